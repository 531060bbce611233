//! Org and project in the address of a request.
//!
//! `/orgs/<org>/mcp` and `/<org>/<project>/mcp` select by path, `<org>.<domain>` by host. Services behind admission do not see that: they
//! get the plain path, and a caller of that org and project.

use http::{Uri, uri::PathAndQuery};
use rialto_model::{
    call::Caller,
    ids::{OrgId, ProjectId, Scope, is_slug},
};

use crate::host_check::host_name;

/// Path segment before an org's name.
const ORGS_SEGMENT: &str = "orgs";

/// Address forms of this server.
#[derive(Clone, Debug, Default)]
pub(crate) struct TenantPaths {
    /// Domain below which orgs have hosts.
    pub(crate) domain: Option<String>,
    /// First path segments of all endpoints: what may follow an org and a project.
    pub(crate) endpoints: Vec<&'static str>,
}

/// Org and project that an address selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TenantSelection<'a> {
    org: &'a str,
    project: Option<&'a str>,
    /// Length of the part of the path that selects.
    prefix: usize,
    /// True if it names two orgs, or an impossible one.
    is_invalid: bool,
}

// === impl TenantPaths ===

impl TenantPaths {
    /// Org and project that the address selects, if it does.
    pub(crate) fn parse<'a>(&self, host: &'a str, path: &'a str) -> Option<TenantSelection<'a>> {
        let by_path = self.parse_path(path);
        let Some(host_org) = self.org_in_host(host) else { return by_path };
        let by_host =
            TenantSelection { org: host_org, project: None, prefix: 0, is_invalid: !is_slug(host_org) };
        let Some(tenant) = by_path else { return Some(by_host) };
        let is_invalid = tenant.is_invalid || !tenant.org.eq_ignore_ascii_case(host_org);
        Some(TenantSelection { is_invalid, ..tenant })
    }

    /// Org in the name of a host.
    pub(crate) fn org_in_host<'a>(&self, host: &'a str) -> Option<&'a str> {
        let (label, rest) = host_name(host).split_once('.')?;
        self.domain.as_ref().filter(|domain| domain.eq_ignore_ascii_case(rest)).map(|_| label)
    }

    fn parse_path<'a>(&self, path: &'a str) -> Option<TenantSelection<'a>> {
        let (first, rest) = split_segment(path)?;
        if self.endpoints.contains(&first) {
            return None;
        }
        let (second, rest) = split_segment(rest)?;
        let prefix = path.len() - rest.len();
        if first == ORGS_SEGMENT {
            return Some(TenantSelection {
                org: second,
                project: None,
                prefix,
                is_invalid: !is_slug(second),
            });
        }
        let (third, _) = split_segment(rest)?;
        let is_tenant = is_slug(first) && is_slug(second) && self.endpoints.contains(&third);
        is_tenant.then_some(TenantSelection { org: first, project: Some(second), prefix, is_invalid: false })
    }
}

// === impl TenantSelection ===

impl TenantSelection<'_> {
    /// Path without org and project.
    pub(crate) fn plain_path<'p>(&self, path: &'p str) -> &'p str {
        path.get(self.prefix..).unwrap_or(path)
    }

    /// Moves a caller without a tenant of its own. True if the org is possible.
    pub(crate) fn apply_to(&self, caller: &mut Caller) -> bool {
        let project = ProjectId::from(self.project.unwrap_or("main"));
        caller.scope = Scope { org: OrgId::from(self.org), project };
        !self.is_invalid
    }

    /// Moves a caller within its own org. True if that is the org that is selected.
    pub(crate) fn apply_within_org(&self, caller: &mut Caller) -> bool {
        let is_own = !self.is_invalid && caller.scope.org.as_str() == self.org;
        if let Some(project) = self.project
            && is_own
        {
            caller.scope.project = ProjectId::from(project);
        }
        is_own
    }

    /// Address without org and project.
    pub(crate) fn strip_from(&self, uri: &Uri) -> Option<Uri> {
        let rest = self.plain_path(uri.path());
        let text = uri.query().map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"));
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
        Uri::from_parts(parts).ok()
    }
}

/// First segment of a path and the rest, with its slash.
fn split_segment(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/')?;
    let end = path.find('/').unwrap_or(path.len());
    Some(path.split_at(end)).filter(|(word, _)| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant_paths() -> TenantPaths {
        TenantPaths { domain: Some("Bridge.example".to_owned()), endpoints: vec!["mcp", "a2a"] }
    }

    /// `org/project rest`, as the address selects them.
    fn selected(host: &str, path: &str) -> String {
        match tenant_paths().parse(host, path) {
            None => "-".to_owned(),
            Some(tenant) if tenant.is_invalid => "nowhere".to_owned(),
            Some(tenant) => {
                format!("{}/{} {}", tenant.org, tenant.project.unwrap_or_default(), tenant.plain_path(path))
            }
        }
    }

    #[test]
    fn a_path_selects_an_org_and_perhaps_a_project() {
        for (path, expected) in [
            ("/mcp", "-"),
            ("/", "-"),
            ("/mcp/web/mcp", "-"),
            ("/orgs/acme/mcp", "acme/ /mcp"),
            ("/orgs/acme/a2a/tasks", "acme/ /a2a/tasks"),
            ("/acme/web/mcp", "acme/web /mcp"),
            ("/acme/web/mcp/x", "acme/web /mcp/x"),
            ("/acme/web/healthz", "-"),
            ("/acme/mcp", "-"),
            ("/.well-known/x/mcp", "-"),
            ("/ac%2fme/web/mcp", "-"),
            ("//web/mcp", "-"),
            ("/orgs/../mcp", "nowhere"),
            ("/orgs/a%20b/mcp", "nowhere"),
        ] {
            assert_eq!(selected("localhost", path), expected, "{path}");
        }
    }

    #[test]
    fn a_name_selects_an_org_and_agrees_with_the_path() {
        for (host, path, expected) in [
            ("acme.bridge.example:8443", "/mcp", "acme/ /mcp"),
            ("bridge.example", "/mcp", "-"),
            ("acme.elsewhere.example", "/mcp", "-"),
            ("acme.bridge.example", "/acme/web/mcp", "acme/web /mcp"),
            ("acme.bridge.example", "/orgs/other/mcp", "nowhere"),
            ("_x.bridge.example", "/mcp", "nowhere"),
        ] {
            assert_eq!(selected(host, path), expected, "{host}{path}");
        }
        assert!(TenantPaths::default().parse("acme.bridge.example", "/mcp").is_none());
    }

    #[test]
    fn a_query_survives() {
        let uri: Uri = "http://h/acme/web/mcp?names=both".parse().unwrap();
        let tenant = tenant_paths().parse("h", "/acme/web/mcp").unwrap();
        assert_eq!(tenant.strip_from(&uri).unwrap(), "http://h/mcp?names=both");
    }
}
