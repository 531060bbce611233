//! `rialto agents credential`: the credential sent to an agent, globally or per caller.

use std::path::Path;

use rialto_api_types::agents::AgentRow;
use rialto_model::{
    agent,
    credential::{ApiKeyLocation, Credential, CredentialScheme, OAuth, OAuthClientAuth, SecretSource},
    json::Extra,
};
use rialto_secrets::private_files;

use crate::{
    api_client::ApiClient,
    cli::{AgentCredentialOptions, AuthSchemeName, ClientAuthName, CredentialFlags, KeyPlaceName},
    output::{self, CommandError},
};

/// The credential that the flags describe; none when they describe none.
pub(super) fn credential_from_flags(flags: &CredentialFlags) -> Result<Option<Credential>, CommandError> {
    let scheme = scheme(flags)?;
    let Some(source) = source(flags) else {
        if scheme.is_some() || !flags.hosts.is_empty() {
            let why = "name the source of the secret: --secret env:NAME, file:PATH or store:NAME";
            return Err(CommandError::usage(why));
        }
        return Ok(None);
    };
    let hosts = flags.hosts.iter().map(|name| host(name)).collect::<Result<_, _>>()?;
    Ok(Some(Credential { scheme, hosts, ..Credential::new(source) }))
}

/// Changes what an agent is shown.
pub(super) async fn change(api: &ApiClient, wanted: AgentCredentialOptions) -> Result<(), CommandError> {
    let agent: AgentRow = api.get(&["agents", &wanted.agent]).read().await?;
    let credential = changed_credential(agent.credential, &wanted)?;
    let path = ["agents", agent.id.as_str(), "credential"];
    let mut row: Extra = api.put(&path).with_json(&credential).read().await?;
    let shown = row.take("shownAs").and_then(|shown| shown.read::<Option<String>>().ok()).flatten();
    warn(api, credential.as_ref()).await;
    if wanted.listing.json {
        output::print_json(&row);
    } else if credential.is_none() {
        output::print_line(format!("no credential is sent to {}", agent.slug));
    } else {
        output::print_line(format!("credential sent to {}: {}", agent.slug, shown.unwrap_or_default()));
    }
    Ok(())
}

/// Scheme and source of the credential, without the secret.
pub(crate) fn describe_credential(agent: &agent::Agent) -> String {
    let Some(credential) = &agent.credential else { return String::new() };
    let mut text = format!("{}, {}", describe_scheme(agent).unwrap_or_default(), credential.source);
    if !credential.hosts.is_empty() {
        text += &format!("; also for {}", credential.hosts.join(", "));
    }
    for (caller, source) in &credential.callers {
        text += &format!("; for {caller}: {source}");
    }
    if credential.named_callers_only {
        text += "; other callers are rejected";
    }
    text
}

/// Scheme of the credential, or the reason it cannot be used.
pub(crate) fn describe_scheme(agent: &agent::Agent) -> Option<String> {
    let credential = agent.credential.as_ref()?;
    let scheme = rialto_a2a::credential::scheme(credential, &agent.url, Some(&agent.card));
    Some(scheme.map_or_else(|why| format!("nothing yet ({why})"), |scheme| scheme.to_string()))
}

/// Warns when a secret is missing, or when others can read it. A server on another machine reads its own secrets.
pub(super) async fn warn(api: &ApiClient, credential: Option<&Credential>) {
    let (Some(credential), Some(program)) = (credential, api.local_app()) else { return };
    for source in credential.callers.values().chain([&credential.source]) {
        if let Err(why) = (program.secrets)(source).await {
            output::print_note(format!(
                "warning: {why}, here and where the server is started; until it is set, calls fail"
            ));
        }
        if let Some(path) = exposed_secret_file(source) {
            output::print_note(format!(
                "other users of this machine can read the secret in {path}; chmod 600 {path}"
            ));
        }
    }
}

/// The file, if others can read it.
pub(crate) fn exposed_secret_file(source: &SecretSource) -> Option<&str> {
    let SecretSource::File(path) = source else { return None };
    private_files::is_open_to_others(Path::new(path)).ok()?.then_some(path)
}

fn changed_credential(
    old: Option<Credential>,
    asked: &AgentCredentialOptions,
) -> Result<Option<Credential>, CommandError> {
    let flags = &asked.credential;
    let Some(caller) = &asked.for_caller else {
        if asked.remove {
            return Ok(None);
        }
        let mut new = match (merge_credential(flags, old.as_ref())?, old) {
            (None, old) => old.ok_or_else(|| no_credential(&asked.agent))?,
            (Some(new), old) => {
                let callers = old.map(|old| (old.callers, old.named_callers_only)).unwrap_or_default();
                Credential { callers: callers.0, named_callers_only: callers.1, ..new }
            }
        };
        new.named_callers_only = asked.named_callers_only.unwrap_or(new.named_callers_only);
        return Ok(Some(new));
    };
    let mut credential = old.ok_or_else(|| no_credential(&asked.agent))?;
    match source(flags) {
        _ if asked.remove => drop(credential.callers.remove(caller)),
        Some(source) => drop(credential.callers.insert(caller.clone(), source)),
        None => return Err(CommandError::usage("name the source of the caller's secret with --secret")),
    }
    credential.named_callers_only = asked.named_callers_only.unwrap_or(credential.named_callers_only);
    Ok(Some(credential))
}

/// Applies options to an existing credential: hosts or scheme can change without naming the source again.
fn merge_credential(
    flags: &CredentialFlags,
    old: Option<&Credential>,
) -> Result<Option<Credential>, CommandError> {
    let Some(old) = old.filter(|_| source(flags).is_none()) else { return credential_from_flags(flags) };
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

fn scheme(flags: &CredentialFlags) -> Result<Option<CredentialScheme>, CommandError> {
    let has_oauth = flags.client_id.is_some()
        || flags.token_url.is_some()
        || flags.audience.is_some()
        || flags.client_auth.is_some()
        || !flags.token_scopes.is_empty();
    let implied = [
        (AuthSchemeName::ApiKey, flags.key_name.is_some() || flags.key_in.is_some()),
        (AuthSchemeName::Basic, flags.user.is_some()),
        (
            if flags.auth == Some(AuthSchemeName::Exchange) {
                AuthSchemeName::Exchange
            } else {
                AuthSchemeName::OAuth2
            },
            has_oauth,
        ),
    ];
    let mut kinds: Vec<_> = implied.into_iter().filter_map(|(kind, is)| is.then_some(kind)).collect();
    kinds.extend(flags.auth);
    kinds.dedup();
    match kinds.as_slice() {
        [] => Ok(None),
        [AuthSchemeName::Bearer] => Ok(Some(CredentialScheme::Bearer)),
        [AuthSchemeName::Basic] => Ok(Some(CredentialScheme::Basic { user: flags.user.clone() })),
        [AuthSchemeName::ApiKey] => match &flags.key_name {
            Some(name) => {
                Ok(Some(CredentialScheme::ApiKey { place: place(flags.key_in), name: name.clone() }))
            }
            None => Err(CommandError::usage(
                "an API key needs the name of a header, parameter or cookie: --key-name X-API-Key",
            )),
        },
        [AuthSchemeName::OAuth2] => match &flags.client_id {
            Some(client) => Ok(Some(CredentialScheme::OAuth2(oauth(flags, client)))),
            None => Err(CommandError::usage("OAuth 2 needs a client id: --client-id ID")),
        },
        [AuthSchemeName::Exchange] => match (&flags.client_id, &flags.token_url) {
            (Some(client), Some(_)) => Ok(Some(CredentialScheme::Exchange(oauth(flags, client)))),
            _ => Err(CommandError::usage(
                "a token exchange needs a client id and a token endpoint: --client-id ID --token-url URL",
            )),
        },
        _ => Err(CommandError::usage("the flags describe more than one kind of credential; name one kind")),
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
fn host(name: &str) -> Result<String, CommandError> {
    let parsed =
        url::Url::parse(&format!("scheme://{name}")).ok().filter(|_| !name.contains(['/', '@', '?', '#']));
    match parsed.as_ref().and_then(url::Url::host_str) {
        Some(_) => Ok(name.to_ascii_lowercase()),
        None => Err(CommandError::usage(format!("\"{name}\" is not a host or host:port"))),
    }
}

fn no_credential(agent: &str) -> CommandError {
    CommandError::usage(format!(
        "{agent} has no credential yet; first set the one for all callers: `rialto agents credential {agent} --secret SOURCE`"
    ))
}
