//! `rialto config …`: what can be set, and what is.

use crate::{
    cli,
    config::Config,
    output::{self, CommandError},
};

pub(crate) fn run(config: &Config, command: &cli::ConfigCommand) -> Result<(), CommandError> {
    match command {
        cli::ConfigCommand::Schema => output::print_json(&Config::schema()),
        cli::ConfigCommand::Show => {
            let text =
                toml::to_string_pretty(config).map_err(|error| CommandError::failed(error.to_string()))?;
            output::print_line(text.trim_end());
        }
    }
    Ok(())
}
