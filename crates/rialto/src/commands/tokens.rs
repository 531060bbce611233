//! `rialto tokens …`: who may come in over HTTP.

use jiff::{SignedDuration, Timestamp};
use rialto_console::admin::tokens::{shown, state};
use rialto_model::{
    call::{CallerId, CallerKind},
    clock::{Clock, SystemClock},
    ids::{OrgId, ProjectId, Scope, fresh},
    rights::{Right, Rights},
    store::{Store, StoreError, Token},
};
use serde_json::Value;

use crate::{
    cli::{CallerKindName, CreateToken, Lifetime, Listing, RightName, Tokens},
    output::{self, Trouble},
    program::Program,
};

/// What a new token is for.
pub(crate) struct Wanted {
    pub(crate) caller: CallerId,
    pub(crate) kind: CallerKind,
    pub(crate) rights: Rights,
    pub(crate) scope: Scope,
    pub(crate) expires_at: Option<Timestamp>,
}

pub(crate) async fn run(program: &Program, command: Tokens) -> Result<(), Trouble> {
    match command {
        Tokens::Create(wanted) => make(&*program.store, wanted).await,
        Tokens::List(listing) => list(&*program.store, listing).await,
        Tokens::Revoke { token } => revoke(&*program.store, &token).await,
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
        let (scope, kind, rights) = (Scope::default(), CallerKind::User, Rights::ALL);
        Self { caller: CallerId::from("owner"), kind, rights, scope, expires_at: None }
    }

    /// The row of the token with this id.
    pub(crate) fn token(self, id: String, token: &str) -> Token {
        let Self { caller, kind, rights, scope, expires_at } = self;
        let (hash, created_at) = (rialto_edge::auth::hash(token), SystemClock.now());
        Token { id, hash, scope, caller, kind, rights, created_at, expires_at, revoked_at: None }
    }

    fn read(asked: &CreateToken) -> Result<Self, Trouble> {
        let rights = asked.scopes.iter().map(|scope| match scope {
            RightName::Call => Right::Call,
            RightName::Discover => Right::Discover,
            RightName::Admin => Right::Admin,
        });
        let kind = match asked.kind {
            CallerKindName::User => CallerKind::User,
            CallerKindName::Session => CallerKind::Session,
            CallerKindName::Agent => CallerKind::Agent,
        };
        let scope =
            Scope { org: OrgId::from(asked.org.as_str()), project: ProjectId::from(asked.project.as_str()) };
        Ok(Self {
            caller: CallerId::from(asked.caller.as_str()),
            kind,
            rights: if asked.scopes.is_empty() { Rights::default() } else { Rights::of(rights) },
            scope,
            expires_at: end_of(asked.expires)?,
        })
    }
}

async fn make(store: &dyn Store, asked: CreateToken) -> Result<(), Trouble> {
    let (row, token) = create(store, Wanted::read(&asked)?).await?;
    if asked.listing.json {
        let mut shown = shown(&row, SystemClock.now());
        shown["token"] = Value::String(token);
        output::json(&shown);
    } else {
        output::line(&token);
        let end = row.expires_at.map_or_else(String::new, |end| format!(", until {}", moment(end)));
        output::note(format!(
            "This token is for {}{end}. It is not kept and not shown again; to take it back: rialto tokens revoke {}",
            row.caller, row.id
        ));
    }
    Ok(())
}

async fn list(store: &dyn Store, listing: Listing) -> Result<(), Trouble> {
    let tokens = store.tokens().await?;
    if listing.json {
        output::json(&tokens.iter().map(|token| shown(token, SystemClock.now())).collect::<Vec<_>>());
        return Ok(());
    }
    let rows = tokens.iter().map(|token| {
        vec![
            token.id.clone(),
            token.caller.to_string(),
            kind(token).to_owned(),
            token.rights.to_string(),
            format!("{}/{}", token.scope.org, token.scope.project),
            moment(token.created_at),
            token.expires_at.map_or_else(|| "never".to_owned(), moment),
            state(token, SystemClock.now()).to_owned(),
        ]
    });
    let header =
        ["token", "caller", "kind", "scopes", "org/project", "created (utc)", "expires (utc)", "state"];
    output::table(&header, rows.collect());
    Ok(())
}

async fn revoke(store: &dyn Store, name: &str) -> Result<(), Trouble> {
    let tokens = store.tokens().await?;
    let id = find(&tokens, name)?;
    match store.revoke_token(id, SystemClock.now()).await? {
        Some(_) => output::line(format!("The token {id} lets nobody in any more.")),
        None => output::line(format!("The token {id} was revoked before.")),
    }
    Ok(())
}

/// The one token that is meant: by its id, or by its caller if there is only one that is still good.
fn find<'a>(tokens: &'a [Token], name: &str) -> Result<&'a str, Trouble> {
    if let Some(token) = tokens.iter().find(|token| token.id == name) {
        return Ok(&token.id);
    }
    let of_caller = |token: &&Token| token.caller.as_str() == name && token.revoked_at.is_none();
    let ids: Vec<&str> = tokens.iter().filter(of_caller).map(|token| token.id.as_str()).collect();
    match ids.as_slice() {
        [id] => Ok(id),
        [] => Err(Trouble::usage(format!(
            "there is no token \"{name}\" that could be revoked; see `rialto tokens list`"
        ))),
        many => Err(Trouble::usage(format!(
            "{name} has {} tokens; say which one is meant: {}",
            many.len(),
            many.join(", ")
        ))),
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

const fn kind(token: &Token) -> &'static str {
    match token.kind {
        CallerKind::User => "user",
        CallerKind::Session => "session",
        CallerKind::Agent => "agent",
    }
}

fn moment(at: Timestamp) -> String {
    at.strftime("%F %T").to_string()
}
