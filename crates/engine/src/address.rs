//! An agent's base URL in its one canonical spelling.

use url::Url;

/// Suffixes that people may paste after the base URL.
const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Why a text is not an agent's address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is not a URL.
    #[error("\"{0}\" is not a URL; write it like https://agents.example.com/reviewer")]
    NotAUrl(String),
    /// It is not on the web.
    #[error("\"{0}\" is neither http nor https")]
    Scheme(String),
    /// It says more than where.
    #[error("an agent's base URL has no {0}; leave it out")]
    Extra(&'static str),
}

/// The canonical spelling: scheme and host in lower case, no default port, no slash at the end, no pasted card path.
pub fn normalize(text: &str) -> Result<String, AddressError> {
    let text = text.trim();
    let url = Url::parse(text).map_err(|_| AddressError::NotAUrl(text.to_owned()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(AddressError::Scheme(text.to_owned()));
    }
    if url.query().is_some() {
        return Err(AddressError::Extra("query"));
    }
    if url.fragment().is_some() {
        return Err(AddressError::Extra("fragment"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Extra(
            "user name or password (register it with `rialto agents add URL --user NAME --token-env PASSWORD`)",
        ));
    }
    let host = url.host_str().ok_or_else(|| AddressError::NotAUrl(text.to_owned()))?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Ok(format!("{}://{host}{port}{}", url.scheme(), base_path(url.path())))
}

fn base_path(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let stripped = WELL_KNOWN.iter().find_map(|card| path.strip_suffix(card));
    stripped.unwrap_or(path).trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_spelling_of_an_address_becomes_the_same() {
        for text in [
            "HTTPS://Agents.Example.COM/Reviewer",
            "https://agents.example.com:443/Reviewer/",
            "https://agents.example.com/Reviewer//",
            " https://agents.example.com/Reviewer/.well-known/agent-card.json ",
            "https://agents.example.com/Reviewer/.well-known/agent.json",
            "https://agents.example.com/Reviewer/.well-known/agent-card.json/",
        ] {
            assert_eq!(normalize(text).unwrap(), "https://agents.example.com/Reviewer");
        }
        assert_eq!(normalize("http://127.0.0.1:8080/").unwrap(), "http://127.0.0.1:8080");
        assert_eq!(normalize("http://[::1]:80/").unwrap(), "http://[::1]");
    }

    #[test]
    fn what_is_not_a_base_url_is_refused_with_the_reason() {
        assert_eq!(normalize("agents"), Err(AddressError::NotAUrl("agents".into())));
        assert_eq!(normalize("ftp://a.b"), Err(AddressError::Scheme("ftp://a.b".into())));
        assert_eq!(normalize("http://a.b/?x=1"), Err(AddressError::Extra("query")));
        assert_eq!(normalize("http://a.b/#x"), Err(AddressError::Extra("fragment")));
        assert!(matches!(normalize("http://me:pw@a.b/"), Err(AddressError::Extra(_))));
    }

    proptest! {
        #[test]
        fn a_canonical_address_stays_as_it_is(text in "https?://[a-zA-Z0-9.]{1,20}(:[0-9]{1,4})?(/[a-zA-Z0-9/._-]{0,20})?") {
            if let Ok(once) = normalize(&text) {
                prop_assert_eq!(normalize(&once).unwrap(), once);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = normalize(&text);
        }
    }
}
