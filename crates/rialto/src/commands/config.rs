//! `rialto config …`: what can be set, and what is.

use crate::{
    cli,
    config::Config,
    output::{self, Trouble},
};

pub(crate) fn run(config: &Config, command: &cli::Config) -> Result<(), Trouble> {
    match command {
        cli::Config::Schema => output::json(&Config::schema()),
        cli::Config::Show => {
            let text = toml::to_string_pretty(config).map_err(|error| Trouble::other(error.to_string()))?;
            output::line(text.trim_end());
        }
    }
    Ok(())
}
