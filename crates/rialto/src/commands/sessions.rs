//! `rialto sessions …`: who is signed in to the console.

use jiff::Timestamp;
use rialto_api_types::tokens::{SessionList, SessionRow};
use rialto_model::json::Json;

use crate::{
    api_client::{ApiClient, parse_response},
    cli::SessionsCommand,
    output::{self, CommandError},
};

pub(crate) async fn run(api: &ApiClient, command: SessionsCommand) -> Result<(), CommandError> {
    match command {
        SessionsCommand::List(listing) => list(api, listing.json).await,
        SessionsCommand::End { session } => {
            api.delete(&["sessions", &session]).send_unit().await?;
            output::print_line(format!("Ended the session {session}."));
            Ok(())
        }
    }
}

async fn list(api: &ApiClient, as_json: bool) -> Result<(), CommandError> {
    let SessionList::<Json> { sessions } = api.get(&["sessions"]).read().await?;
    if as_json {
        output::print_json(&sessions);
        return Ok(());
    }
    if sessions.is_empty() {
        output::print_line("There are no console sessions.");
        return Ok(());
    }
    let rows = sessions.iter().map(parse_response::<SessionRow>).collect::<Result<Vec<_>, _>>()?;
    let moment = |at: Timestamp| at.strftime("%F %T").to_string();
    let rows = rows.into_iter().map(|row| {
        let expires = row.expires_at.map(moment).unwrap_or_default();
        vec![
            row.id,
            row.caller.to_string(),
            row.org.to_string(),
            row.token_id.unwrap_or_else(|| "signed".to_owned()),
            moment(row.created_at),
            expires,
        ]
    });
    output::print_table(
        &["session", "caller", "org", "token", "since (utc)", "expires (utc)"],
        rows.collect(),
    );
    Ok(())
}
