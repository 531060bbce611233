//! What a skill is called in a client's list of tools, and which schemas that client bears.
//!
//! A skill has two names that always work: the canonical one and the legacy alias. Clients differ in what they bear:
//! some refuse dots, some rewrite them, all have a limit. This module picks the name to show, cuts what is too long,
//! and keeps names apart that a client's own rewriting would make equal.

use rialto_engine::directory::Entry;
use sha2::{Digest, Sha256};

use crate::config::{Schemas, ToolNames};

/// How tools are called in one client's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Naming {
    /// What was configured, or asked for in the request.
    pub(crate) mode: ToolNames,
    /// What the client can bear.
    pub(crate) rule: &'static Rule,
    /// Whether schemas are made portable for it.
    pub(crate) portable: bool,
}

/// What a client can bear in a tool's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// How such clients call themselves, in lower case: the beginning of the name, up to a word's end.
    known_as: &'static [&'static str],
    /// Whether a dot makes the client refuse the tool, or all of them.
    refuses_dots: bool,
    /// The characters, beside letters, digits and `_`, that it does not rewrite to `_`; none when it rewrites nothing.
    rewrites_all_but: Option<&'static str>,
    /// Whether it, or the API of its models, stumbles over schemas that are valid: it does not resolve `$ref`, or refuses choices at the root.
    needs_portable: bool,
    /// The longest name, after what the client puts in front (`mcp__<server>__` and the like).
    max: usize,
}

/// One of the names a skill may be listed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Canonical,
    Legacy,
}

/// Rule for every client that is not in the table: `^[a-zA-Z0-9_-]{1,64}$`.
///
/// Agent frameworks (LangChain, OpenAI Agents, pydantic-ai, mcp-use, Vercel AI SDK, Continue, AutoGen) pass names on unchanged, and the APIs
/// of OpenAI and Anthropic refuse the whole request when one name has a dot. So a client must be known to accept dots to be shown one.
static ANY: Rule =
    Rule { known_as: &[], refuses_dots: true, rewrites_all_but: None, needs_portable: false, max: 64 };

/// What is known of single clients. A new client is a new line.
///
/// Where a client counts its server's name in, twelve characters are left for that name.
static RULES: [Rule; 9] = [
    // MCP's own rule, without a model behind it: the Inspector and Rialto's own clients. Not "rialto": Mastra calls itself by the
    // name that its user gave the server.
    Rule {
        known_as: &["inspector-client", "mcp-inspector", "inspector", "rialto-cli", "rialto-demo"],
        refuses_dots: false,
        rewrites_all_but: None,
        needs_portable: false,
        max: 128,
    },
    // `^[a-zA-Z0-9_-]{1,64}$`, and one bad name blocks all tools of the connector. `$defs` are lost on the way to the model, and its
    // API refuses `oneOf`, `allOf` and `anyOf` at the root, for every model of that house.
    Rule {
        known_as: &["claude-ai", "claude.ai", "claude desktop", "claude-desktop", "anthropic"],
        refuses_dots: true,
        rewrites_all_but: None,
        needs_portable: true,
        max: 64,
    },
    // `mcp__<server>__<tool>` in at most 128 characters; all but letters, digits, `_` and `-` becomes `_`.
    Rule {
        known_as: &["claude-code", "claude code"],
        refuses_dots: false,
        rewrites_all_but: Some("-"),
        needs_portable: true,
        max: 109,
    },
    // Letters, digits and `_` only; server and tool together at most 60 characters. Some versions find no `$defs`.
    Rule {
        known_as: &["cursor"],
        refuses_dots: true,
        rewrites_all_but: Some(""),
        needs_portable: true,
        max: 48,
    },
    // `$defs` are lost on the way to the model. Warns about dots and remaps; the name goes to models that take 64 characters, behind `mcp_<server>_`.
    Rule {
        known_as: &["visual studio code", "vscode"],
        refuses_dots: true,
        rewrites_all_but: Some("-"),
        needs_portable: true,
        max: 47,
    },
    // Passes names on as they are to an API that takes `^[a-zA-Z0-9_-]{1,128}$`; its models take 64. `$ref` is not resolved.
    Rule {
        known_as: &["github-copilot", "github copilot", "copilot"],
        refuses_dots: true,
        rewrites_all_but: None,
        needs_portable: true,
        max: 64,
    },
    // `^[a-zA-Z0-9_-]+$`, 64 characters. A root with `oneOf`, `anyOf`, `allOf`, `enum` or `not` is refused.
    Rule {
        known_as: &["openai", "chatgpt"],
        refuses_dots: true,
        rewrites_all_but: None,
        needs_portable: true,
        max: 64,
    },
    // `mcp__<server>` + `__<tool>` for OpenAI's models; dots and hyphens become `_`. A `$ref` becomes a text.
    Rule {
        known_as: &["codex"],
        refuses_dots: false,
        rewrites_all_but: Some(""),
        needs_portable: true,
        max: 45,
    },
    // `mcp_<server>_<tool>`; more than 63 characters lose their middle, and may become equal. The API knows no `$defs`.
    Rule {
        known_as: &["gemini"],
        refuses_dots: false,
        rewrites_all_but: Some("-.:"),
        needs_portable: true,
        max: 46,
    },
];

/// Clients that show their model the structured content of a result in place of its texts, and pass over its files (Codex) or show
/// them too (Claude Code). By one of the names that they are known as.
static STRUCTURED_FIRST: [&str; 2] = ["claude-code", "codex"];

/// How many hex digits of its hash a cut name ends in.
const HASH_DIGITS: usize = 8;

// === impl Rule ===

impl Rule {
    /// The rule for a client that calls itself `name`.
    pub(crate) fn of(name: &str) -> &'static Self {
        let name = name.to_ascii_lowercase();
        let is_meant = |known: &&'static str| {
            name.strip_prefix(known)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        };
        RULES.iter().find(|rule| rule.known_as.iter().any(&is_meant)).unwrap_or(&ANY)
    }

    /// Whether the client rewrites names, so that two of them may become equal.
    pub(crate) const fn rewrites(&self) -> bool {
        self.rewrites_all_but.is_some()
    }

    /// Whether the client shows its model the structured content of a result in place of the rest.
    pub(crate) fn reads_structured_first(&self) -> bool {
        self.known_as.iter().any(|name| STRUCTURED_FIRST.contains(name))
    }

    /// The name as the client will rewrite it.
    pub(crate) fn rewritten(&self, name: &str) -> String {
        let Some(kept) = self.rewrites_all_but else { return name.to_owned() };
        let keep = |c: char| c.is_ascii_alphanumeric() || c == '_' || kept.contains(c);
        name.chars().map(|c| if keep(c) { c } else { '_' }).collect()
    }

    /// The form a skill is shown in when nobody asked for another one.
    const fn preferred(&self) -> Form {
        if self.refuses_dots { Form::Legacy } else { Form::Canonical }
    }

    /// A name of the skill that the client can bear.
    fn name(&self, entry: &Entry, form: Form) -> String {
        let name = match form {
            // What MCP itself does not allow in a name nobody can be asked to bear.
            Form::Canonical if is_allowed(&entry.canonical) => &entry.canonical,
            Form::Canonical | Form::Legacy => &entry.legacy,
        };
        if name.len() <= self.max { name.clone() } else { self.cut(name, &entry.canonical) }
    }

    /// The beginning of `name`, and the hash of the skill's canonical name: the same in every list, and its own.
    pub(crate) fn cut(&self, name: &str, canonical: &str) -> String {
        let room = self.max.saturating_sub(HASH_DIGITS + 1);
        let kept = name.get(..room.min(name.len())).unwrap_or(name);
        format!("{}_{}", kept.trim_end_matches(['_', '.', '-']), hash(canonical))
    }
}

// === impl Naming ===

impl Naming {
    /// What a client that calls itself `name` is shown when nobody says otherwise.
    pub(crate) fn of(name: &str, mode: ToolNames) -> Self {
        let rule = Rule::of(name);
        Self { mode, rule, portable: rule.needs_portable }
    }

    /// The same with the schemas that were configured or asked for.
    #[must_use]
    pub(crate) const fn with_schemas(mut self, schemas: Schemas) -> Self {
        self.portable = match schemas {
            Schemas::Auto => self.rule.needs_portable,
            Schemas::Portable => true,
            Schemas::Original => false,
        };
        self
    }

    /// The names a skill is listed under, each once.
    pub(crate) fn names(&self, entry: &Entry) -> Vec<String> {
        let forms: &[Form] = match self.mode {
            ToolNames::Auto => &[self.rule.preferred()],
            ToolNames::Canonical => &[Form::Canonical],
            ToolNames::Legacy => &[Form::Legacy],
            ToolNames::Both => &[Form::Canonical, Form::Legacy],
        };
        let mut names: Vec<String> = forms.iter().map(|form| self.rule.name(entry, *form)).collect();
        names.dedup();
        names
    }
}

/// What a cut name of the skill with that canonical name ends in.
pub(crate) fn hash(canonical: &str) -> String {
    Sha256::digest(canonical).iter().take(HASH_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

/// The beginning and the hash of a name that looks as if it had been cut.
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
