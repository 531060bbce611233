//! `[guardrails]`: what is wrong with them, and the way to the model servers that they name.

use std::{sync::Arc, time::Duration};

use futures::FutureExt;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use rialto_a2a::credential::SecretResolver;
use rialto_engine::{guardrails::Asker, search::edit_distance};
use rialto_guardrails::{
    classifier::{ClassifierOptions, ClassifyResponse, MAX_RESPONSE_BYTES},
    config::GuardrailCheck,
};
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchRequest},
};
use rialto_model::credential::SecretSource;
use toml::Value;

/// Parameters of a request to a model server.
struct ClassifierRequest {
    uri: Uri,
    token: Option<SecretSource>,
    timeout: Duration,
    reach: Reach,
    body: Vec<u8>,
}

/// Asks model servers through the one client.
pub(crate) fn classifier_client(fetch: Arc<dyn Fetch>, secrets: SecretResolver) -> Asker {
    Arc::new(move |classifier: &ClassifierOptions, text: &str| {
        let (fetch, secrets, question) =
            (Arc::clone(&fetch), Arc::clone(&secrets), classifier_request(classifier, text));
        async move { query_classifier(&*fetch, &secrets, question?).await }.boxed()
    })
}

fn classifier_request(classifier: &ClassifierOptions, text: &str) -> Result<ClassifierRequest, String> {
    Ok(ClassifierRequest {
        uri: classifier.url.parse().map_err(|_| "its address is none".to_owned())?,
        token: classifier.token.as_deref().and_then(SecretSource::parse),
        timeout: Duration::from_millis(classifier.timeout_ms),
        reach: if classifier.allow_private { Reach::Private } else { Reach::Public },
        body: serde_json::to_vec(&classifier.request(text)).map_err(|error| error.to_string())?,
    })
}

async fn query_classifier(
    fetch: &dyn Fetch,
    secrets: &SecretResolver,
    question: ClassifierRequest,
) -> Result<ClassifyResponse, String> {
    let mut request = FetchRequest::new(Method::POST, question.uri)
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(source) = &question.token {
        let token = secrets(source).await?;
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose()))
            .map_err(|_| format!("{source} holds what no header can"))?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    request.body = question.body.into();
    request.reach = question.reach;
    (request.patience, request.total, request.limit) =
        (question.timeout, Some(question.timeout), Some(MAX_RESPONSE_BYTES));
    let answer = fetch.fetch(request).await.map_err(|error| error.to_string())?;
    if answer.status != StatusCode::OK {
        return Err(format!("it answered with HTTP status {}", answer.status.as_u16()));
    }
    let body = answer.body.read().await.map_err(|error| error.to_string())?;
    // The response may repeat the text, so it is not part of the error.
    serde_json::from_slice(&body).map_err(|_| "its answer is not {\"scores\": {…}}".to_owned())
}

/// First check of an unknown type: its location, and a suggestion.
pub(crate) fn find_config_error(section: &Value) -> Option<(String, String)> {
    let guardrails = |group: &str| -> Vec<(String, &Value)> {
        let named = section.get(group).and_then(Value::as_table).into_iter().flatten();
        let quoted = |name: &str| if group == "skills" { format!("\"{name}\"") } else { name.to_owned() };
        named.map(|(name, guardrail)| (format!("{group}.{}.", quoted(name)), guardrail)).collect()
    };
    let all = std::iter::once((String::new(), section)).chain(guardrails("orgs")).chain(guardrails("skills"));
    for (place, guardrail) in all {
        let checks = guardrail.get("checks").and_then(Value::as_array).into_iter().flatten();
        for (n, check) in checks.enumerate() {
            if let Some(name) = check.get("type").and_then(Value::as_str)
                && !GuardrailCheck::TYPES.contains(&name)
            {
                return Some((format!("{place}checks[{n}].type"), unknown_check(name)));
            }
        }
    }
    None
}

fn unknown_check(name: &str) -> String {
    let far = 1 + name.len() / 3;
    let near = GuardrailCheck::TYPES
        .iter()
        .filter_map(|known| Some((edit_distance(name, known, far)?, known)))
        .min();
    match near {
        Some((_, near)) => format!("there is no check \"{name}\"; did you mean \"{near}\"?"),
        None => format!("there is no check \"{name}\"; there are {}", GuardrailCheck::TYPES.join(", ")),
    }
}
