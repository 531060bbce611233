//! Which org and project an address selects.
//!
//! `/orgs/<org>/mcp` and `/<org>/<project>/mcp` select by path, `<org>.<domain>` by name. What is behind the gate never
//! sees that: it finds the plain path, and a caller of that org and project.

use http::{Uri, uri::PathAndQuery};
use rialto_model::{
    call::Caller,
    ids::{OrgId, ProjectId, Scope, is_slug},
};

use crate::guard::name_of;

/// The word before an org's name in a path.
const ORGS: &str = "orgs";

/// The addresses of this server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Orgs have names below this one.
    pub(crate) domain: Option<String>,
    /// What can stand after an org and a project: the first word of each path there is.
    pub(crate) doors: Vec<&'static str>,
}

/// What an address selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked<'a> {
    org: &'a str,
    project: Option<&'a str>,
    /// How much of the path that took.
    prefix: usize,
    /// It names two orgs, or none that can be.
    is_nowhere: bool,
}

// === impl Places ===

impl Places {
    /// What the address selects, if anything.
    pub(crate) fn read<'a>(&self, host: &'a str, path: &'a str) -> Option<Asked<'a>> {
        let by_path = self.by_path(path);
        let Some(named) = self.org_of(host) else { return by_path };
        let nothing = Asked { org: named, project: None, prefix: 0, is_nowhere: !is_slug(named) };
        let Some(asked) = by_path else { return Some(nothing) };
        let is_nowhere = asked.is_nowhere || !asked.org.eq_ignore_ascii_case(named);
        Some(Asked { is_nowhere, ..asked })
    }

    /// The org in the name of a host.
    pub(crate) fn org_of<'a>(&self, host: &'a str) -> Option<&'a str> {
        let (label, rest) = name_of(host).split_once('.')?;
        self.domain.as_ref().filter(|domain| domain.eq_ignore_ascii_case(rest)).map(|_| label)
    }

    fn by_path<'a>(&self, path: &'a str) -> Option<Asked<'a>> {
        let (first, rest) = word(path)?;
        if self.doors.contains(&first) {
            return None;
        }
        let (second, rest) = word(rest)?;
        let prefix = path.len() - rest.len();
        if first == ORGS {
            return Some(Asked { org: second, project: None, prefix, is_nowhere: !is_slug(second) });
        }
        let (third, _) = word(rest)?;
        let is_place = is_slug(first) && is_slug(second) && self.doors.contains(&third);
        is_place.then_some(Asked { org: first, project: Some(second), prefix, is_nowhere: false })
    }
}

// === impl Asked ===

impl Asked<'_> {
    /// The path that is left.
    pub(crate) fn rest<'p>(&self, path: &'p str) -> &'p str {
        path.get(self.prefix..).unwrap_or(path)
    }

    /// Moves a caller who may go anywhere. Answers whether there is such a place.
    pub(crate) fn take(&self, caller: &mut Caller) -> bool {
        let project = ProjectId::from(self.project.unwrap_or("main"));
        caller.scope = Scope { org: OrgId::from(self.org), project };
        !self.is_nowhere
    }

    /// Moves a caller inside its own org. Answers whether that is the org that is asked for.
    pub(crate) fn admit(&self, caller: &mut Caller) -> bool {
        let is_own = !self.is_nowhere && caller.scope.org.as_str() == self.org;
        if let Some(project) = self.project
            && is_own
        {
            caller.scope.project = ProjectId::from(project);
        }
        is_own
    }

    /// The same address without what selects.
    pub(crate) fn strip(&self, uri: &Uri) -> Option<Uri> {
        let rest = self.rest(uri.path());
        let text = uri.query().map_or_else(|| rest.to_owned(), |query| format!("{rest}?{query}"));
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
        Uri::from_parts(parts).ok()
    }
}

/// The first word of a path and what comes after it, its slash included.
fn word(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/')?;
    let end = path.find('/').unwrap_or(path.len());
    Some(path.split_at(end)).filter(|(word, _)| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places { domain: Some("Bridge.example".to_owned()), doors: vec!["mcp", "a2a"] }
    }

    /// `org/project rest`, as the address selects them.
    fn asked(host: &str, path: &str) -> String {
        match places().read(host, path) {
            None => "-".to_owned(),
            Some(asked) if asked.is_nowhere => "nowhere".to_owned(),
            Some(asked) => {
                format!("{}/{} {}", asked.org, asked.project.unwrap_or_default(), asked.rest(path))
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
            assert_eq!(asked("localhost", path), expected, "{path}");
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
            assert_eq!(asked(host, path), expected, "{host}{path}");
        }
        assert!(Places::default().read("acme.bridge.example", "/mcp").is_none());
    }

    #[test]
    fn a_query_survives() {
        let uri: Uri = "http://h/acme/web/mcp?names=both".parse().unwrap();
        let asked = places().read("h", "/acme/web/mcp").unwrap();
        assert_eq!(asked.strip(&uri).unwrap(), "http://h/mcp?names=both");
    }
}
