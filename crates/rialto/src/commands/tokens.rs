//! `rialto tokens …`: who may come in over HTTP.

use rialto_model::{
    call::CallerId,
    clock::{Clock, SystemClock},
    ids::{Scope, fresh},
    store::{Store, StoreError, Token},
};
use serde_json::json;

use crate::{
    cli::{Listing, Tokens},
    output::{self, Trouble},
    program::Program,
};

pub(crate) async fn run(program: &Program, command: Tokens) -> Result<(), Trouble> {
    let unavailable = |error: StoreError| Trouble::other(error.to_string());
    match command {
        Tokens::Create { caller, listing } => {
            let (row, token) = create(&*program.store, &caller).await.map_err(unavailable)?;
            if listing.json {
                output::json(&json!({ "id": row.id, "caller": row.caller, "token": token }));
            } else {
                output::line(&token);
                output::note(format!("This token is for {caller}. It is not kept and not shown again."));
            }
        }
        Tokens::List(Listing { json }) => {
            let tokens = program.store.tokens().await.map_err(unavailable)?;
            if json {
                let rows = tokens
                    .iter()
                    .map(|t| json!({ "id": t.id, "caller": t.caller, "createdAt": t.created_at }));
                output::json(&rows.collect::<Vec<_>>());
            } else {
                let rows = tokens.iter().map(|token| {
                    vec![
                        token.id.clone(),
                        token.caller.to_string(),
                        token.created_at.strftime("%F %T").to_string(),
                    ]
                });
                output::table(&["token", "caller", "created (utc)"], rows.collect());
            }
        }
    }
    Ok(())
}

/// Makes a token and keeps its hash. Answers the row and the token itself, which is nowhere else.
pub(crate) async fn create(store: &dyn Store, caller: &str) -> Result<(Token, String), StoreError> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random).map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let token = format!("rialto_{digits}");
    let row = Token {
        id: format!("tok_{}", fresh()),
        hash: rialto_edge::auth::hash(&token),
        scope: Scope::default(),
        caller: CallerId::from(caller),
        created_at: SystemClock.now(),
    };
    store.put_token(&row).await?;
    Ok((row, token))
}
