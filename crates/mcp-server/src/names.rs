//! Tool names and schemas that fit a client.
//!
//! A skill has two names that always work: the canonical one and the legacy alias. Clients accept different names: some reject dots,
//! some rewrite them, all have a limit. This module selects the name to list, truncates long names, and keeps names apart that a
//! client's own rewriting would make equal.

use rialto_engine::directory::Entry;
use sha2::{Digest, Sha256};

use crate::config::{SchemaStyle, ToolNames};

/// Naming of tools in one client's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    /// Mode from the configuration or the request.
    pub(crate) mode: ToolNames,
    /// Rule of the client.
    pub(crate) rule: &'static ClientNameRule,
    /// True for portable schemas.
    pub(crate) portable: bool,
}

/// Naming rule of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ClientNameRule {
    /// Client names in lower case that the rule applies to: the start of the name, up to the end of a word.
    known_as: &'static [&'static str],
    /// False when a dot makes the client reject the tool, or all of them.
    refuses_dots: bool,
    /// Characters besides letters, digits and `_` that the client does not rewrite to `_`; none when it rewrites nothing.
    rewrites_all_but: Option<&'static str>,
    /// True when the client, or the API of its models, rejects valid schemas: it does not resolve `$ref`, or allows no choices at the
    /// root.
    needs_portable: bool,
    /// Maximum length, after the client's own prefix (`mcp__<server>__` and the like).
    max: usize,
}

/// Form of a listed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameForm {
    Canonical,
    Legacy,
}

/// Rule for every client that is not in the table: `^[a-zA-Z0-9_-]{1,64}$`.
///
/// Agent frameworks (LangChain, OpenAI Agents, pydantic-ai, mcp-use, Vercel AI SDK, Continue, AutoGen) pass names on unchanged, and the APIs
/// of OpenAI and Anthropic refuse the whole request when one name has a dot. So a client must be known to accept dots to be shown one.
static ANY_CLIENT: ClientNameRule = ClientNameRule {
    known_as: &[],
    refuses_dots: true,
    rewrites_all_but: None,
    needs_portable: false,
    max: 64,
};

/// Rules of known clients. A new client is a new line.
///
/// Where a client counts its server's name in, twelve characters are left for that name.
static RULES: [ClientNameRule; 9] = [
    // MCP's own rule, without a model behind it: the Inspector and Rialto's own clients. Not "rialto": Mastra uses the name that its
    // user gave the server.
    ClientNameRule {
        known_as: &["inspector-client", "mcp-inspector", "inspector", "rialto-cli", "rialto-demo"],
        refuses_dots: false,
        rewrites_all_but: None,
        needs_portable: false,
        max: 128,
    },
    // `^[a-zA-Z0-9_-]{1,64}$`, and one bad name blocks all tools of the connector. `$defs` are lost on the way to the model, and the API
    // rejects `oneOf`, `allOf` and `anyOf` at the root, for every model of that vendor.
    ClientNameRule {
        known_as: &["claude-ai", "claude.ai", "claude desktop", "claude-desktop", "anthropic"],
        refuses_dots: true,
        rewrites_all_but: None,
        needs_portable: true,
        max: 64,
    },
    // `mcp__<server>__<tool>` in at most 128 characters; all but letters, digits, `_` and `-` becomes `_`.
    ClientNameRule {
        known_as: &["claude-code", "claude code"],
        refuses_dots: false,
        rewrites_all_but: Some("-"),
        needs_portable: true,
        max: 109,
    },
    // Letters, digits and `_` only; server and tool together at most 60 characters. Some versions find no `$defs`.
    ClientNameRule {
        known_as: &["cursor"],
        refuses_dots: true,
        rewrites_all_but: Some(""),
        needs_portable: true,
        max: 48,
    },
    // `$defs` are lost on the way to the model. Warns about dots and remaps; the name goes to models that take 64 characters, behind `mcp_<server>_`.
    ClientNameRule {
        known_as: &["visual studio code", "vscode"],
        refuses_dots: true,
        rewrites_all_but: Some("-"),
        needs_portable: true,
        max: 47,
    },
    // Passes names on as they are to an API that takes `^[a-zA-Z0-9_-]{1,128}$`; its models take 64. `$ref` is not resolved.
    ClientNameRule {
        known_as: &["github-copilot", "github copilot", "copilot"],
        refuses_dots: true,
        rewrites_all_but: None,
        needs_portable: true,
        max: 64,
    },
    // `^[a-zA-Z0-9_-]+$`, 64 characters. A root with `oneOf`, `anyOf`, `allOf`, `enum` or `not` is refused.
    ClientNameRule {
        known_as: &["openai", "chatgpt"],
        refuses_dots: true,
        rewrites_all_but: None,
        needs_portable: true,
        max: 64,
    },
    // `mcp__<server>` + `__<tool>` for OpenAI's models; dots and hyphens become `_`. A `$ref` becomes a text.
    ClientNameRule {
        known_as: &["codex"],
        refuses_dots: false,
        rewrites_all_but: Some(""),
        needs_portable: true,
        max: 45,
    },
    // `mcp_<server>_<tool>`; more than 63 characters lose their middle, and may become equal. The API knows no `$defs`.
    ClientNameRule {
        known_as: &["gemini"],
        refuses_dots: false,
        rewrites_all_but: Some("-.:"),
        needs_portable: true,
        max: 46,
    },
];

/// Clients that show their model the structured content of a result in place of its texts, and skip its files (Codex) or show them too
/// (Claude Code), by one of the names that they use.
static STRUCTURED_FIRST: [&str; 2] = ["claude-code", "codex"];

/// Number of hex digits of the hash in a truncated name.
const HASH_DIGITS: usize = 8;

// === impl ClientNameRule ===

impl ClientNameRule {
    /// Rule of the client named `name`.
    pub(crate) fn of(name: &str) -> &'static Self {
        let name = name.to_ascii_lowercase();
        let is_meant = |known: &&'static str| {
            name.strip_prefix(known)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        RULES.iter().find(|rule| rule.known_as.iter().any(&is_meant)).unwrap_or(&ANY_CLIENT)
    }

    /// True when the client rewrites names, so that two may become equal.
    pub(crate) const fn rewrites(&self) -> bool {
        self.rewrites_all_but.is_some()
    }

    /// True when the client shows its model structured content in place of the content blocks.
    pub(crate) fn reads_structured_first(&self) -> bool {
        self.known_as.iter().any(|name| STRUCTURED_FIRST.contains(name))
    }

    /// The name as the client rewrites it.
    pub(crate) fn rewritten(&self, name: &str) -> String {
        let Some(kept) = self.rewrites_all_but else { return name.to_owned() };
        let keep = |c: char| c.is_ascii_alphanumeric() || c == '_' || kept.contains(c);
        name.chars().map(|c| if keep(c) { c } else { '_' }).collect()
    }

    /// Default form of a name.
    const fn preferred(&self) -> NameForm {
        if self.refuses_dots { NameForm::Legacy } else { NameForm::Canonical }
    }

    /// A name of the skill that the client accepts.
    fn name(&self, entry: &Entry, form: NameForm) -> String {
        let name = match form {
            // A name that MCP itself does not allow is never listed.
            NameForm::Canonical if is_allowed(&entry.canonical) => &entry.canonical,
            NameForm::Canonical | NameForm::Legacy => &entry.legacy,
        };
        if name.len() <= self.max { name.clone() } else { self.cut(name, &entry.canonical) }
    }

    /// Start of `name` and the hash of the skill's canonical name: unique, and equal in every list.
    pub(crate) fn cut(&self, name: &str, canonical: &str) -> String {
        let room = self.max.saturating_sub(HASH_DIGITS + 1);
        let kept = name.get(..room.min(name.len())).unwrap_or(name);
        format!("{}_{}", kept.trim_end_matches(['_', '.', '-']), hash(canonical))
    }
}

// === impl Naming ===

impl Naming {
    /// Naming for the client named `name`, without an option in the request.
    pub(crate) fn of(name: &str, mode: ToolNames) -> Self {
        let rule = ClientNameRule::of(name);
        Self { mode, rule, portable: rule.needs_portable }
    }

    /// Sets the schemas that were configured or requested.
    #[must_use]
    pub(crate) const fn with_schemas(mut self, schemas: SchemaStyle) -> Self {
        self.portable = match schemas {
            SchemaStyle::Auto => self.rule.needs_portable,
            SchemaStyle::Portable => true,
            SchemaStyle::Original => false,
        };
        self
    }

    /// Names of a skill in the list, without duplicates.
    pub(crate) fn names(&self, entry: &Entry) -> Vec<String> {
        let forms: &[NameForm] = match self.mode {
            ToolNames::Auto => &[self.rule.preferred()],
            ToolNames::Canonical => &[NameForm::Canonical],
            ToolNames::Legacy => &[NameForm::Legacy],
            ToolNames::Both => &[NameForm::Canonical, NameForm::Legacy],
        };
        let mut names: Vec<String> = forms.iter().map(|form| self.rule.name(entry, *form)).collect();
        names.dedup();
        names
    }
}

/// Hash in the truncated names of the skill with that canonical name.
pub(crate) fn hash(canonical: &str) -> String {
    Sha256::digest(canonical).iter().take(HASH_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// Start and hash of a name that may have been truncated.
pub(crate) fn hash_at_end(name: &str) -> Option<(&str, &str)> {
    let (kept, hash) = name.rsplit_once('_')?;
    let is_hash =
        hash.len() == HASH_DIGITS && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hash.then_some((kept, hash))
}

/// MCP allows letters, digits, `_`, `-` and `.` in a tool's name.
pub(crate) fn is_allowed(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

#[cfg(test)]
mod tests;
