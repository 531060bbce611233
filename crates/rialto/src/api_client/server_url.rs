//! URL of the server, and the check whether a token may be sent to it.

use url::{Host, Url};

use crate::{cli::GlobalOptions, output::CommandError};

/// The server that is meant; none where the data folder is.
pub(super) fn server_url(common: &GlobalOptions) -> Result<Option<Url>, CommandError> {
    let (remote, data) = (&common.remote, common.data.is_some());
    let Some(text) = remote.server.as_deref().filter(|text| !text.trim().is_empty()) else { return Ok(None) };
    match (remote.typed.server, remote.typed.data) {
        (true, true) => Err(CommandError::usage(
            "--data names a folder of this machine, and --server another machine; leave one of them out",
        )),
        // What is typed counts for more than what is around it.
        (false, true) => Ok(None),
        (false, false) if data => Err(CommandError::usage(
            "RIALTO_DATA selects a folder of this machine and RIALTO_SERVER another machine; unset one of them, or pass --data or --server",
        )),
        _ => parse_base_url(text).and_then(|url| add_tenant_path(url, common)).map(Some),
    }
}

/// The address of the org and project that are named, below that of the server.
fn add_tenant_path(mut url: Url, common: &GlobalOptions) -> Result<Url, CommandError> {
    if !common.tenant.is_named() {
        return Ok(url);
    }
    if url.path() != "/" && !url.path().is_empty() {
        return Err(CommandError::usage(
            "--server names an org and a project already; leave --org and --project out, or the path of --server",
        ));
    }
    let scope = common.tenant.scope();
    url.set_path(&format!("/{}/{}", scope.org, scope.project));
    Ok(url)
}

/// An address that paths can be put behind.
fn parse_base_url(text: &str) -> Result<Url, CommandError> {
    let wrong = |why: &str| {
        CommandError::usage(format!(
            "--server: \"{text}\" {why}; write https://host, or https://host/ORG/PROJECT"
        ))
    };
    let mut url = Url::parse(text.trim()).map_err(|_| wrong("is no address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        // The URL is not repeated: it may contain a secret.
        return Err(CommandError::usage(
            "--server: a user or password in an address ends up in logs; use a token",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("has more than a path"));
    }
    let path = url.path().trim_end_matches('/').to_owned();
    // A copied address of a page or an endpoint selects its server.
    let path = ["/api/v1", "/factory", "/mcp", "/a2a"]
        .iter()
        .find_map(|end| path.strip_suffix(end))
        .unwrap_or(&path);
    url.set_path(path);
    Ok(url)
}

/// True if the connection stays on this machine, or is encrypted.
pub(super) fn is_loopback_or_encrypted(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost") || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || is_loopback
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        parse_base_url(text).map_or_else(|trouble| trouble.message, |url| url.to_string())
    }

    #[test]
    fn an_address_is_that_of_a_server_or_of_a_project() {
        assert_eq!(read("https://bridge.example"), "https://bridge.example/");
        assert_eq!(read("https://bridge.example:8443/acme/web/"), "https://bridge.example:8443/acme/web");
        assert_eq!(read("http://127.0.0.1:8420/mcp"), "http://127.0.0.1:8420/");
        assert_eq!(read("https://bridge.example/acme/web/factory"), "https://bridge.example/acme/web");
        assert!(read("bridge").contains("is no address"));
        assert!(read("bridge:8420").contains("neither http nor https"));
        assert!(read("https://a/?x=1").contains("more than a path"));
        assert!(!read("https://ann:hunter2@a/").contains("hunter2"));
    }

    #[test]
    fn only_what_is_encrypted_or_stays_here_is_private() {
        let is = |text: &str| is_loopback_or_encrypted(&Url::parse(text).unwrap());
        assert!(is("https://bridge.example") && is("http://127.0.0.2:1") && is("http://[::1]:1"));
        assert!(is("http://localhost:8420") && !is("http://bridge.example") && !is("http://10.0.0.1"));
        assert!(!is("http://localhost.example"));
    }
}
