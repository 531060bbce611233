//! Where an agent's token comes from when it is needed.
//!
//! Tokens are read at each use and never kept: a rotated token counts for the next call. The environment belongs to
//! the program, so it is injected.

use std::sync::Arc;

use rialto_model::agent::{Credential, Secret};

/// Reads a credential; none when there is nothing to read.
pub type Resolver = Arc<dyn Fn(&Credential) -> Option<Secret> + Send + Sync>;

/// A resolver for all kinds of credentials that asks `env` for variables.
pub fn resolver(env: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Resolver {
    Arc::new(move |credential| match credential {
        Credential::Held(secret) => Some(secret.clone()),
        Credential::Env(name) => env(name).as_deref().and_then(trimmed),
        Credential::File(path) => std::fs::read_to_string(path).ok().as_deref().and_then(trimmed),
    })
}

/// What to do about a credential that cannot be read.
pub(crate) fn missing(credential: &Credential) -> String {
    match credential {
        Credential::Env(name) => {
            format!("the agent's token is missing: set the environment variable {name}")
        }
        Credential::File(path) => {
            format!("the agent's token is missing: {path} cannot be read or is empty")
        }
        Credential::Held(_) => "the agent's token is empty: load the agent again with a token".to_owned(),
    }
}

fn trimmed(text: &str) -> Option<Secret> {
    let text = text.trim();
    (!text.is_empty()).then(|| Secret::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_wherever_it_is_kept() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from a file\n").unwrap();
        let path = file.path().to_str().unwrap().to_owned();
        let read = resolver(|name| (name == "TOKEN").then(|| "from the environment".to_owned()));
        for (credential, token) in [
            (Credential::Env("TOKEN".into()), Some("from the environment")),
            (Credential::Env("OTHER".into()), None),
            (Credential::File(path), Some("from a file")),
            (Credential::File("/nowhere".into()), None),
            (Credential::Held("held".into()), Some("held")),
        ] {
            assert_eq!(read(&credential).as_ref().map(Secret::expose), token, "{credential:?}");
        }
    }

    #[test]
    fn a_missing_token_is_named() {
        assert!(missing(&Credential::Env("TOKEN".into())).contains("TOKEN"));
    }
}
