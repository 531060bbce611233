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
    api_client::{ApiClient, parse_response},
    cli::{CreateTokenOptions, OutputOptions, RoleName, TokenLifetime, TokenScopeName, TokensCommand},
    output::{self, CommandError},
};

/// Parameters of a new token.
pub(crate) struct TokenGrant {
    pub(crate) caller: CallerId,
    pub(crate) kind: CallerKind,
    pub(crate) rights: TokenScopes,
    pub(crate) scope: Scope,
    pub(crate) expires_at: Option<Timestamp>,
}

/// Runs a command about tokens; `org` is the one that was named, if one was.
pub(crate) async fn run(
    api: &ApiClient,
    command: TokensCommand,
    org: Option<&str>,
) -> Result<(), CommandError> {
    match command {
        TokensCommand::Create(wanted) => create_token(api, wanted).await,
        TokensCommand::List(listing) => list(api, listing, org).await,
        TokensCommand::Revoke { token } => revoke(api, &token).await,
    }
}

/// Creates a token and stores its hash. Returns the row and the token, which is not stored.
pub(crate) async fn create(store: &dyn Store, wanted: TokenGrant) -> Result<(Token, String), StoreError> {
    let token = fresh_token().map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    let row = wanted.token(format!("tok_{}", fresh()), &token);
    store.put_token(&row).await?;
    Ok((row, token))
}

/// Random token.
pub(crate) fn fresh_token() -> Result<String, getrandom::Error> {
    let mut random = [0_u8; 32];
    getrandom::fill(&mut random)?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("rialto_{digits}"))
}

// === impl TokenGrant ===

impl TokenGrant {
    /// Token of the server's owner: all scopes, no expiry.
    pub(crate) fn owner() -> Self {
        let (scope, kind, rights) = (Scope::default(), CallerKind::User, TokenScopes::ALL.with_owner());
        Self { caller: CallerId::from("owner"), kind, rights, scope, expires_at: None }
    }

    /// The row of the token with this id.
    pub(crate) fn token(self, id: String, token: &str) -> Token {
        let Self { caller, kind, rights, scope, expires_at } = self;
        let (hash, created_at) = (rialto_http_server::auth::hash_token(token), SystemClock.now());
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

async fn create_token(api: &ApiClient, asked: CreateTokenOptions) -> Result<(), CommandError> {
    let new = NewToken {
        caller: asked.caller,
        kind: Some(asked.kind.kind()),
        scopes: asked.scopes.iter().copied().map(right).collect(),
        role: asked.role.map(|RoleName::Owner| TokenRole::Owner),
        expires_at: expiry(asked.expires)?,
        ..NewToken::default()
    };
    let row: Json = api.post(&["tokens"]).with_json(&new).read().await?;
    if asked.listing.json {
        output::print_json(&row);
        return Ok(());
    }
    let CreatedToken { row, token } = parse_response(&row)?;
    output::print_line(token);
    let end = row.expires_at.map_or_else(String::new, |end| format!(", until {}", format_time(end)));
    output::print_note(format!(
        "This token is for {}{end}. It is not stored and not shown again; to revoke it: rialto tokens revoke {}",
        row.caller, row.id
    ));
    Ok(())
}

async fn list(api: &ApiClient, listing: OutputOptions, org: Option<&str>) -> Result<(), CommandError> {
    let mut rows = fetch_tokens(api).await?;
    // At the machine those of all orgs are listed, unless one is named.
    rows.retain(|(token, _)| org.is_none_or(|org| token.org.as_str() == org));
    rows.sort_by(|(one, _), (other, _)| one.id.cmp(&other.id));
    if listing.json {
        output::print_json(&rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
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
            format_time(token.created_at),
            token.created_by.unwrap_or_default(),
            token.expires_at.map_or_else(|| "never".to_owned(), format_time),
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
    output::print_table(&header, rows.collect());
    Ok(())
}

async fn revoke(api: &ApiClient, name: &str) -> Result<(), CommandError> {
    let rows = fetch_tokens(api).await?;
    let token = find_token(rows.iter().map(|(token, _)| token), name)?;
    if token.revoked_at.is_some() {
        output::print_line(format!("The token {} was already revoked.", token.id));
        return Ok(());
    }
    api.delete(&["tokens", &token.id]).send_unit().await?;
    output::print_line(format!("Revoked the token {}.", token.id));
    Ok(())
}

/// All tokens, parsed and as received.
async fn fetch_tokens(api: &ApiClient) -> Result<Vec<(TokenRow, Json)>, CommandError> {
    let TokenList::<Json> { tokens } = api.get(&["tokens"]).read().await?;
    tokens.into_iter().map(|row| Ok((parse_response(&row)?, row))).collect()
}

/// The one token that is meant: by its id, or by its caller if there is only one that is still good.
fn find_token<'a>(
    tokens: impl Iterator<Item = &'a TokenRow> + Clone,
    name: &str,
) -> Result<&'a TokenRow, CommandError> {
    if let Some(token) = tokens.clone().find(|token| token.id == name) {
        return Ok(token);
    }
    let of_caller = |token: &&TokenRow| token.caller.as_str() == name && token.revoked_at.is_none();
    let found: Vec<&TokenRow> = tokens.filter(of_caller).collect();
    match found.as_slice() {
        [token] => Ok(token),
        [] => Err(CommandError::usage(format!(
            "there is no token \"{name}\" that could be revoked; see `rialto tokens list`"
        ))),
        many => {
            let ids: Vec<&str> = many.iter().map(|token| token.id.as_str()).collect();
            let message = format!("{name} has {} tokens; name one by its id: {}", ids.len(), ids.join(", "));
            Err(CommandError::usage(message))
        }
    }
}

fn expiry(life: TokenLifetime) -> Result<Option<Timestamp>, CommandError> {
    let Some(life) = life.0 else { return Ok(None) };
    let life = SignedDuration::try_from(life).ok();
    match life.and_then(|life| SystemClock.now().checked_add(life).ok()) {
        Some(end) => Ok(Some(end)),
        None => Err(CommandError::usage("--expires is too far in the future; use never")),
    }
}

const fn right(name: TokenScopeName) -> TokenScope {
    match name {
        TokenScopeName::Call => TokenScope::Call,
        TokenScopeName::Discover => TokenScope::Discover,
        TokenScopeName::Admin => TokenScope::Admin,
    }
}

fn format_time(at: Timestamp) -> String {
    at.strftime("%F %T").to_string()
}
