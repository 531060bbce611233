//! `rialto tokens …`: who may come in over HTTP.

use jiff::{SignedDuration, Timestamp};
use rialto_api_types::tokens::{CreatedToken, NewToken, TokenList, TokenRole, TokenRow};
use rialto_model::{
    call::{CallerId, CallerKind},
    clock::{Clock, SystemClock},
    ids::{Scope, fresh},
    json::Json,
    store::{Store, StoreError, Token},
    token_scopes::{TokenScope, TokenScopes},
};

use crate::{
    cli::{CreateToken, Lifetime, Listing, RightName, RoleName, Tokens},
    desk::{Desk, read},
    output::{self, Trouble},
};

/// What a new token is for.
pub(crate) struct Wanted {
    pub(crate) caller: CallerId,
    pub(crate) kind: CallerKind,
    pub(crate) rights: TokenScopes,
    pub(crate) scope: Scope,
    pub(crate) expires_at: Option<Timestamp>,
}

/// Runs a command about tokens; `org` is the one that was named, if one was.
pub(crate) async fn run(desk: &Desk, command: Tokens, org: Option<&str>) -> Result<(), Trouble> {
    match command {
        Tokens::Create(wanted) => make(desk, wanted).await,
        Tokens::List(listing) => list(desk, listing, org).await,
        Tokens::Revoke { token } => revoke(desk, &token).await,
    }
}

/// Makes a token and keeps its hash. Answers the row and the token itself, which is nowhere else.
pub(crate) async fn create(store: &dyn Store, wanted: Wanted) -> Result<(Token, String), StoreError> {
    let token = fresh_token().map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    let row = wanted.token(format!("tok_{}", fresh()), &token);
    store.put_token(&row).await?;
    Ok((row, token))
}

/// A token that nobody can guess.
pub(crate) fn fresh_token() -> Result<String, getrandom::Error> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random)?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("rialto_{digits}"))
}

// === impl Wanted ===

impl Wanted {
    /// Whoever runs this server: may do everything, for ever.
    pub(crate) fn owner() -> Self {
        let (scope, kind, rights) = (Scope::default(), CallerKind::User, TokenScopes::ALL.with_owner());
        Self { caller: CallerId::from("owner"), kind, rights, scope, expires_at: None }
    }

    /// The row of the token with this id.
    pub(crate) fn token(self, id: String, token: &str) -> Token {
        let Self { caller, kind, rights, scope, expires_at } = self;
        let (hash, created_at) = (rialto_edge::auth::hash(token), SystemClock.now());
        Token {
            id,
            hash,
            scope,
            caller,
            kind,
            rights,
            created_at,
            expires_at,
            revoked_at: None,
            created_by: None,
            session_of: None,
        }
    }
}

async fn make(desk: &Desk, asked: CreateToken) -> Result<(), Trouble> {
    let new = NewToken {
        caller: asked.caller,
        kind: Some(asked.kind.kind()),
        scopes: asked.scopes.iter().copied().map(right).collect(),
        role: asked.role.map(|RoleName::Owner| TokenRole::Owner),
        expires_at: end_of(asked.expires)?,
        ..NewToken::default()
    };
    let row: Json = desk.post(&["tokens"]).saying(&new).read().await?;
    if asked.listing.json {
        output::json(&row);
        return Ok(());
    }
    let CreatedToken { row, token } = read(&row)?;
    output::line(token);
    let end = row.expires_at.map_or_else(String::new, |end| format!(", until {}", moment(end)));
    output::note(format!(
        "This token is for {}{end}. It is not kept and not shown again; to take it back: rialto tokens revoke {}",
        row.caller, row.id
    ));
    Ok(())
}

async fn list(desk: &Desk, listing: Listing, org: Option<&str>) -> Result<(), Trouble> {
    let mut rows = known(desk).await?;
    // At the machine those of all orgs are listed, unless one is named.
    rows.retain(|(token, _)| org.is_none_or(|org| token.org.as_str() == org));
    rows.sort_by(|(one, _), (other, _)| one.id.cmp(&other.id));
    if listing.json {
        output::json(&rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
        return Ok(());
    }
    let rows = rows.into_iter().map(|(token, _)| {
        vec![
            token.id,
            token.caller.to_string(),
            token.kind.as_str().to_owned(),
            token.scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" "),
            token.role.map(TokenRole::as_str).unwrap_or_default().to_owned(),
            format!("{}/{}", token.org, token.project),
            moment(token.created_at),
            token.created_by.unwrap_or_default(),
            token.expires_at.map_or_else(|| "never".to_owned(), moment),
            token.state.as_str().to_owned(),
        ]
    });
    let header = [
        "token",
        "caller",
        "kind",
        "scopes",
        "role",
        "org/project",
        "created (utc)",
        "created by",
        "expires (utc)",
        "state",
    ];
    output::table(&header, rows.collect());
    Ok(())
}

async fn revoke(desk: &Desk, name: &str) -> Result<(), Trouble> {
    let rows = known(desk).await?;
    let token = find(rows.iter().map(|(token, _)| token), name)?;
    if token.revoked_at.is_some() {
        output::line(format!("The token {} was revoked before.", token.id));
        return Ok(());
    }
    desk.delete(&["tokens", &token.id]).done().await?;
    output::line(format!("The token {} lets nobody in any more.", token.id));
    Ok(())
}

/// All that are known, as they are shown and as they were told.
async fn known(desk: &Desk) -> Result<Vec<(TokenRow, Json)>, Trouble> {
    let TokenList::<Json> { tokens } = desk.get(&["tokens"]).read().await?;
    tokens.into_iter().map(|row| Ok((read(&row)?, row))).collect()
}

/// The one token that is meant: by its id, or by its caller if there is only one that is still good.
fn find<'a>(tokens: impl Iterator<Item = &'a TokenRow> + Clone, name: &str) -> Result<&'a TokenRow, Trouble> {
    if let Some(token) = tokens.clone().find(|token| token.id == name) {
        return Ok(token);
    }
    let of_caller = |token: &&TokenRow| token.caller.as_str() == name && token.revoked_at.is_none();
    let found: Vec<&TokenRow> = tokens.filter(of_caller).collect();
    match found.as_slice() {
        [token] => Ok(token),
        [] => Err(Trouble::usage(format!(
            "there is no token \"{name}\" that could be revoked; see `rialto tokens list`"
        ))),
        many => {
            let ids: Vec<&str> = many.iter().map(|token| token.id.as_str()).collect();
            let message =
                format!("{name} has {} tokens; say which one is meant: {}", ids.len(), ids.join(", "));
            Err(Trouble::usage(message))
        }
    }
}

fn end_of(life: Lifetime) -> Result<Option<Timestamp>, Trouble> {
    let Some(life) = life.0 else { return Ok(None) };
    let life = SignedDuration::try_from(life).ok();
    match life.and_then(|life| SystemClock.now().checked_add(life).ok()) {
        Some(end) => Ok(Some(end)),
        None => Err(Trouble::usage("--expires is further away than the calendar goes; say never")),
    }
}

const fn right(name: RightName) -> TokenScope {
    match name {
        RightName::Call => TokenScope::Call,
        RightName::Discover => TokenScope::Discover,
        RightName::Admin => TokenScope::Admin,
    }
}

fn moment(at: Timestamp) -> String {
    at.strftime("%F %T").to_string()
}
