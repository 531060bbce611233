//! Files in what a task made, to be kept. What an agent wrote is never a page of ours: browsers are told to keep it, whatever it says
//! it is.

use axum::response::{IntoResponse, Response};
use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use http::{HeaderValue, header};
use rialto_model::{
    failure::{Failure, FailureKind},
    message::{Content, Part},
    task::Task,
};

use super::visit::Visit;
use crate::admin::tasks;

/// As agents write it, with what fills the last piece or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The longest name of a file.
const LONGEST: usize = 100;

/// Where a file is among all that a task made.
pub(super) fn place(task: &Task, part: &Part) -> Option<usize> {
    made(task).position(|one| std::ptr::eq(one, part))
}

pub(super) async fn download(visit: Visit) -> Result<Response, Failure> {
    let (task, _) = tasks::show(&visit.console, &visit.caller, visit.part("id")).await?;
    let none =
        || Failure::new(FailureKind::NotFound, "the task made no such file; its page lists those it made");
    let part = visit.part("at").parse().ok().and_then(|at| made(&task).nth(at)).ok_or_else(none)?;
    let Content::Raw(text) = &part.content else { return Err(none()) };
    let garbled =
        |_| Failure::new(FailureKind::PeerGarbled, "the agent sent this file as something that is no base64");
    let bytes = BASE64.decode(text).map_err(garbled)?;
    let name = format!("attachment; filename=\"{}\"", name(part));
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

fn made(task: &Task) -> impl Iterator<Item = &Part> {
    let results = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    results.chain(task.message.iter().flat_map(|message| &message.parts))
}

/// The name that an agent gave a file, as far as it is one everywhere.
fn name(part: &Part) -> String {
    let given = part.filename.as_deref().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = given.chars().map(plain).take(LONGEST).collect();
    let name = name.trim_matches(['.', '_']);
    if name.is_empty() { "file".to_owned() } else { name.to_owned() }
}
