//! Options of `rialto secrets`.

use clap::Subcommand;

use super::OutputOptions;

#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Store a secret, encrypted; read from stdin or typed at a terminal
    Set {
        /// Name of the secret, used as store:NAME
        #[arg(value_parser = name)]
        name: String,
        /// Environment variable to read the secret from
        #[arg(long, value_name = "VARIABLE")]
        from_env: Option<String>,
    },
    /// List the names of secrets
    List(OutputOptions),
    /// Remove a secret
    Remove {
        /// Secret name
        name: String,
    },
    /// Encrypt all secrets with a new key
    RotateKey {
        /// Environment variable with the new key, if the key is in RIALTO_SECRET_KEY
        #[arg(long, value_name = "VARIABLE")]
        to_env: Option<String>,
    },
}

fn name(text: &str) -> Result<String, String> {
    if rialto_model::ids::is_slug(text) {
        Ok(text.to_owned())
    } else {
        Err("use at most 64 letters, digits, `-` and `_`, beginning with a letter or a digit".to_owned())
    }
}
