//! Headers and variables whose values are kept elsewhere, put together when they are needed.

use std::{collections::BTreeMap, sync::Arc};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_model::{
    backing::{SettingPiece, TransportSetting},
    credential::{Secret, SecretSource},
};

/// Reads the secret of a source. The error says what is missing and how to mend it.
pub type Resolver = Arc<dyn Fn(&SecretSource) -> BoxFuture<'static, Result<Secret, String>> + Send + Sync>;

/// The text of a setting.
pub async fn fill(setting: &TransportSetting, resolve: &Resolver) -> Result<Secret, String> {
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

/// The headers of these settings. Their values are marked as secrets.
pub async fn headers(
    settings: &BTreeMap<String, TransportSetting>,
    resolve: &Resolver,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(settings.len());
    for (name, setting) in settings {
        let wrong = |what: &str| format!("the header {name} cannot be sent: {what}");
        let header = name.parse::<HeaderName>().map_err(|_| wrong("that is not the name of a header"))?;
        let value = fill(setting, resolve).await.map_err(|missing| wrong(&missing))?;
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

    fn resolver() -> Resolver {
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
    async fn a_header_is_put_together_and_never_shown() {
        let made = headers(&settings("authorization", "Bearer ${TOKEN}"), &resolver()).await.unwrap();
        assert_eq!(made["authorization"], "Bearer hunter2");
        assert!(!format!("{made:?}").contains("hunter2"));
    }

    #[tokio::test]
    async fn what_is_missing_is_named() {
        let error = headers(&settings("x-key", "${OTHER}"), &resolver()).await.unwrap_err();
        assert_eq!(error, "the header x-key cannot be sent: env:OTHER is not there or empty");
        let error = headers(&settings("x key", "a"), &resolver()).await.unwrap_err();
        assert!(error.contains("not the name of a header"), "{error}");
    }
}
