//! Downloads of files in the result of a task. The content comes from an agent, so browsers are told to save it and never to show it,
//! whatever its media type.

use axum::response::{IntoResponse, Response};
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderValue, header};
use rialto_admin::tasks;
use rialto_model::{
    failure::{Failure, FailureKind},
    message::{Content, Part},
    task::Task,
};

use super::request::PageRequest;

/// Base64 with or without padding, as agents send it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Maximum length of a file name.
const MAX_NAME_CHARS: usize = 100;

/// Index of a file among the parts of a task's result.
pub(super) fn file_index(task: &Task, part: &Part) -> Option<usize> {
    result_parts(task).position(|one| std::ptr::eq(one, part))
}

pub(super) async fn download(request: PageRequest) -> Result<Response, Failure> {
    let (task, _) = tasks::show(&request.admin, &request.caller, request.path_param("id")).await?;
    let none = || Failure::new(FailureKind::NotFound, "the task has no such file; its page lists its files");
    let part =
        request.path_param("at").parse().ok().and_then(|at| result_parts(&task).nth(at)).ok_or_else(none)?;
    let Content::Raw(text) = &part.content else { return Err(none()) };
    let invalid = |_| Failure::new(FailureKind::PeerGarbled, "the agent sent this file with invalid base64");
    let bytes = BASE64.decode(text).map_err(invalid)?;
    let name = format!("attachment; filename=\"{}\"", safe_name(part));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("attachment")),
        ),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, bytes).into_response())
}

fn result_parts(task: &Task) -> impl Iterator<Item = &Part> {
    let results = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    results.chain(task.message.iter().flat_map(|message| &message.parts))
}

/// File name from the agent, limited to characters that are safe on every system.
fn safe_name(part: &Part) -> String {
    let given = part.filename.as_deref().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = given.chars().map(plain).take(MAX_NAME_CHARS).collect();
    let name = name.trim_matches(['.', '_']);
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}
