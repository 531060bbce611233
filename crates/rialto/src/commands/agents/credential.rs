//! `rialto agents credential`: what an agent is shown at its door, and for whom.

use std::path::Path;

use rialto_api_types::agents::AgentRow;
use rialto_model::{
    agent,
    credential::{ApiKeyLocation, Credential, CredentialScheme, OAuth, OAuthClientAuth, SecretSource},
    json::Extra,
};

use crate::{
    cli::{AgentCredential, AuthKind, ClientAuthName, CredentialFlags, KeyPlaceName},
    desk::Desk,
    output::{self, Trouble},
    private_files,
};

/// The credential that the flags describe; none when they describe none.
pub(super) fn wanted(flags: &CredentialFlags) -> Result<Option<Credential>, Trouble> {
    let scheme = scheme(flags)?;
    let Some(source) = source(flags) else {
        if scheme.is_some() || !flags.hosts.is_empty() {
            let why = "say where the secret is: --secret env:NAME, file:PATH or store:NAME";
            return Err(Trouble::usage(why));
        }
        return Ok(None);
    };
    let hosts = flags.hosts.iter().map(|name| host(name)).collect::<Result<_, _>>()?;
    Ok(Some(Credential { scheme, hosts, ..Credential::new(source) }))
}

/// Changes what an agent is shown.
pub(super) async fn change(desk: &Desk, wanted: AgentCredential) -> Result<(), Trouble> {
    let agent: AgentRow = desk.get(&["agents", &wanted.agent]).read().await?;
    let credential = changed(agent.credential, &wanted)?;
    let path = ["agents", agent.id.as_str(), "credential"];
    let mut row: Extra = desk.put(&path).saying(&credential).read().await?;
    let shown = row.take("shownAs").and_then(|shown| shown.read::<Option<String>>().ok()).flatten();
    warn(desk, credential.as_ref()).await;
    if wanted.listing.json {
        output::json(&row);
    } else if credential.is_none() {
        output::line(format!("{} is shown nothing", agent.slug));
    } else {
        output::line(format!("{} is shown: {}", agent.slug, shown.unwrap_or_default()));
    }
    Ok(())
}

/// What it is shown and where that comes from, never what it is.
pub(crate) fn described(agent: &agent::Agent) -> String {
    let Some(credential) = &agent.credential else { return String::new() };
    let mut text = format!("{}, {}", shown_as(agent).unwrap_or_default(), credential.source);
    if !credential.hosts.is_empty() {
        text += &format!("; also for {}", credential.hosts.join(", "));
    }
    for (caller, source) in &credential.callers {
        text += &format!("; for {caller}: {source}");
    }
    if credential.named_callers_only {
        text += "; nobody else";
    }
    text
}

/// How the secret is shown, or why it cannot be.
pub(crate) fn shown_as(agent: &agent::Agent) -> Option<String> {
    let credential = agent.credential.as_ref()?;
    let scheme = rialto_a2a::credential::scheme(credential, &agent.url, Some(&agent.card));
    Some(scheme.map_or_else(|why| format!("nothing yet ({why})"), |scheme| scheme.to_string()))
}

/// Warns when a secret is missing, or when others can read it. A server on another machine reads its own secrets.
pub(super) async fn warn(desk: &Desk, credential: Option<&Credential>) {
    let (Some(credential), Some(program)) = (credential, desk.program()) else { return };
    for source in credential.callers.values().chain([&credential.source]) {
        if let Err(why) = (program.secrets)(source).await {
            output::note(format!(
                "warning: {why}, here and wherever the server is started; until then calls fail"
            ));
        }
        if let Some(path) = open_to_others(source) {
            output::note(format!("others on this machine can read the secret in {path}; chmod 600 {path}"));
        }
    }
}

/// The file, if others can read it.
pub(crate) fn open_to_others(source: &SecretSource) -> Option<&str> {
    let SecretSource::File(path) = source else { return None };
    private_files::is_open_to_others(Path::new(path)).ok()?.then_some(path)
}

fn changed(old: Option<Credential>, asked: &AgentCredential) -> Result<Option<Credential>, Trouble> {
    let flags = &asked.credential;
    let Some(caller) = &asked.for_caller else {
        if asked.remove {
            return Ok(None);
        }
        let mut new = match (wanted_or(flags, old.as_ref())?, old) {
            (None, old) => old.ok_or_else(|| nothing_yet(&asked.agent))?,
            (Some(new), old) => {
                let callers = old.map(|old| (old.callers, old.named_callers_only)).unwrap_or_default();
                Credential { callers: callers.0, named_callers_only: callers.1, ..new }
            }
        };
        new.named_callers_only = asked.named_callers_only.unwrap_or(new.named_callers_only);
        return Ok(Some(new));
    };
    let mut credential = old.ok_or_else(|| nothing_yet(&asked.agent))?;
    match source(flags) {
        _ if asked.remove => drop(credential.callers.remove(caller)),
        Some(source) => drop(credential.callers.insert(caller.clone(), source)),
        None => return Err(Trouble::usage("say where the caller's secret is, with --secret")),
    }
    credential.named_callers_only = asked.named_callers_only.unwrap_or(credential.named_callers_only);
    Ok(Some(credential))
}

/// What the flags say, with the rest as it was: hosts may be named, or the scheme, without naming the source again.
fn wanted_or(flags: &CredentialFlags, old: Option<&Credential>) -> Result<Option<Credential>, Trouble> {
    let Some(old) = old.filter(|_| source(flags).is_none()) else { return wanted(flags) };
    let scheme = scheme(flags)?.or_else(|| old.scheme.clone());
    let mut hosts = old.hosts.clone();
    for name in &flags.hosts {
        let name = host(name)?;
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    Ok(Some(Credential { scheme, hosts, ..old.clone() }))
}

fn source(flags: &CredentialFlags) -> Option<SecretSource> {
    let env = flags.token_env.clone().map(SecretSource::Env);
    env.or_else(|| flags.token_file.clone().map(SecretSource::File)).or_else(|| flags.secret.clone())
}

fn scheme(flags: &CredentialFlags) -> Result<Option<CredentialScheme>, Trouble> {
    let has_oauth = flags.client_id.is_some()
        || flags.token_url.is_some()
        || flags.audience.is_some()
        || flags.client_auth.is_some()
        || !flags.token_scopes.is_empty();
    let implied = [
        (AuthKind::ApiKey, flags.key_name.is_some() || flags.key_in.is_some()),
        (AuthKind::Basic, flags.user.is_some()),
        (
            if flags.auth == Some(AuthKind::Exchange) { AuthKind::Exchange } else { AuthKind::OAuth2 },
            has_oauth,
        ),
    ];
    let mut kinds: Vec<_> = implied.into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect();
    kinds.extend(flags.auth);
    kinds.dedup();
    match kinds.as_slice() {
        [] => Ok(None),
        [AuthKind::Bearer] => Ok(Some(CredentialScheme::Bearer)),
        [AuthKind::Basic] => Ok(Some(CredentialScheme::Basic { user: flags.user.clone() })),
        [AuthKind::ApiKey] => match &flags.key_name {
            Some(name) => {
                Ok(Some(CredentialScheme::ApiKey { place: place(flags.key_in), name: name.clone() }))
            }
            None => Err(Trouble::usage("an API key needs a name to stand under: --key-name X-API-Key")),
        },
        [AuthKind::OAuth2] => match &flags.client_id {
            Some(client) => Ok(Some(CredentialScheme::OAuth2(oauth(flags, client)))),
            None => Err(Trouble::usage("OAuth 2 needs our name there: --client-id ID")),
        },
        [AuthKind::Exchange] => match (&flags.client_id, &flags.token_url) {
            (Some(client), Some(_)) => Ok(Some(CredentialScheme::Exchange(oauth(flags, client)))),
            _ => {
                Err(Trouble::usage("an exchange needs our name and a place: --client-id ID --token-url URL"))
            }
        },
        _ => Err(Trouble::usage("the flags describe more than one kind of credential; name one kind")),
    }
}

fn oauth(flags: &CredentialFlags, client: &str) -> OAuth {
    OAuth {
        client_id: client.to_owned(),
        token_url: flags.token_url.clone(),
        scopes: flags.token_scopes.clone(),
        audience: flags.audience.clone(),
        client_auth: match flags.client_auth {
            Some(ClientAuthName::Post) => OAuthClientAuth::Post,
            Some(ClientAuthName::Basic) | None => OAuthClientAuth::Basic,
        },
    }
}

const fn place(name: Option<KeyPlaceName>) -> ApiKeyLocation {
    match name {
        Some(KeyPlaceName::Query) => ApiKeyLocation::Query,
        Some(KeyPlaceName::Cookie) => ApiKeyLocation::Cookie,
        Some(KeyPlaceName::Header) | None => ApiKeyLocation::Header,
    }
}

/// A host, perhaps with a port, as addresses spell it.
fn host(name: &str) -> Result<String, Trouble> {
    let parsed =
        url::Url::parse(&format!("scheme://{name}")).ok().filter(|_| !name.contains(['/', '@', '?', '#']));
    match parsed.as_ref().and_then(url::Url::host_str) {
        Some(_) => Ok(name.to_ascii_lowercase()),
        None => Err(Trouble::usage(format!("\"{name}\" is not a host or host:port"))),
    }
}

fn nothing_yet(agent: &str) -> Trouble {
    Trouble::usage(format!(
        "{agent} is shown nothing yet; first say what everybody goes with: `rialto agents credential {agent} --secret SOURCE`"
    ))
}
