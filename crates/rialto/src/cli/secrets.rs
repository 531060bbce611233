//! `rialto secrets …`, as `--help` shows it.

use clap::Subcommand;

use super::Listing;

#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Keep a secret, encrypted; it is read from stdin, or asked for on a terminal
    Set {
        /// Its name, to be used as store:NAME
        #[arg(value_parser = name)]
        name: String,
        /// Take it from this environment variable
        #[arg(long, value_name = "VARIABLE")]
        from_env: Option<String>,
    },
    /// List secrets, without the secrets themselves
    List(Listing),
    /// Forget a secret
    Remove {
        /// Its name
        name: String,
    },
    /// Encrypt all secrets anew, with another key
    RotateKey {
        /// The variable with the new key, when the key is in RIALTO_SECRET_KEY
        #[arg(long, value_name = "VARIABLE")]
        to_env: Option<String>,
    },
}

fn name(text: &str) -> Result<String, String> {
    if rialto_model::ids::is_slug(text) {
        Ok(text.to_owned())
    } else {
        Err("use letters, digits, `-` and `_`, at most 64 of them, a letter or digit first".to_owned())
    }
}
