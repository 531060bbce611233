//! Headers and variables with references to secrets, resolved when they are needed.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    backing::{SettingPiece, TransportSetting},
    credential::{Secret, SecretSource},
};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Function that reads a secret from its source. The error names what is missing and how to fix it.
pub type SecretResolver =
    Arc<dyn Fn(&SecretSource) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync>;

/// Resolves a template to its text.
pub async fn resolve(setting: &TransportSetting, resolve: &SecretResolver) -> Result<Secret, String> {
    let mut text = String::new();
    for piece in setting.pieces() {
        match piece {
            SettingPiece::Text(piece) => text.push_str(&piece),
            SettingPiece::From(source) => {
                let found = resolve(&source).await.map_err(|_| format!("{source} is not there or empty"))?;
                text.push_str(found.expose());
            }
        }
    }
    Ok(Secret::from(text))
}

/// Resolves templates to headers, with values marked as sensitive.
pub async fn resolve_headers(
    settings: &BTreeMap<String, TransportSetting>,
    resolve: &SecretResolver,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(settings.len());
    for (name, setting) in settings {
        let wrong = |what: &str| format!("the header {name} cannot be sent: {what}");
        let header = name.parse::<HeaderName>().map_err(|_| wrong("that is not the name of a header"))?;
        let value = self::resolve(setting, resolve).await.map_err(|missing| wrong(&missing))?;
        let mut value =
            HeaderValue::from_str(value.expose()).map_err(|_| wrong("its value is not plain text"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn resolver() -> SecretResolver {
        Arc::new(|source| {
            let found = match source {
                SecretSource::Env(name) if name == "TOKEN" => Ok(Secret::from("hunter2")),
                _ => Err("the agent's token is missing".to_owned()),
            };
            async move { found }.boxed()
        })
    }

    fn settings(name: &str, text: &str) -> BTreeMap<String, TransportSetting> {
        [(name.to_owned(), TransportSetting::Text(text.to_owned()))].into()
    }

    #[tokio::test]
    async fn a_header_is_resolved_and_marked_as_sensitive() {
        let made = resolve_headers(&settings("authorization", "Bearer ${TOKEN}"), &resolver()).await.unwrap();
        assert_eq!(made["authorization"], "Bearer hunter2");
        assert!(!format!("{made:?}").contains("hunter2"));
    }

    #[tokio::test]
    async fn a_missing_secret_is_named() {
        let error = resolve_headers(&settings("x-key", "${OTHER}"), &resolver()).await.unwrap_err();
        assert_eq!(error, "the header x-key cannot be sent: env:OTHER is not there or empty");
        let error = resolve_headers(&settings("x key", "a"), &resolver()).await.unwrap_err();
        assert!(error.contains("not the name of a header"), "{error}");
    }
}
