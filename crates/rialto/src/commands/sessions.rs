//! `rialto sessions …`: who is signed in to the console.

use jiff::Timestamp;
use rialto_api_types::tokens::{SessionList, SessionRow};
use rialto_model::json::Json;

use crate::{
    cli::Sessions,
    desk::{Desk, read},
    output::{self, Trouble},
};

pub(crate) async fn run(desk: &Desk, command: Sessions) -> Result<(), Trouble> {
    match command {
        Sessions::List(listing) => list(desk, listing.json).await,
        Sessions::End { session } => {
            desk.delete(&["sessions", &session]).done().await?;
            output::line(format!("The session {session} is ended."));
            Ok(())
        }
    }
}

async fn list(desk: &Desk, as_json: bool) -> Result<(), Trouble> {
    let SessionList::<Json> { sessions } = desk.get(&["sessions"]).read().await?;
    if as_json {
        output::json(&sessions);
        return Ok(());
    }
    if sessions.is_empty() {
        output::line("Nobody is signed in.");
        return Ok(());
    }
    let rows = sessions.iter().map(read::<SessionRow>).collect::<Result<Vec<_>, _>>()?;
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
    output::table(&["session", "caller", "org", "token", "since (utc)", "expires (utc)"], rows.collect());
    Ok(())
}
