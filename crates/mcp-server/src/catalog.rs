//! The list of tools, cached per version of the registry and naming rule.
//!
//! Nothing here walks over all skills for one page: a page prepares the tools it shows, once, and the next reader of
//! the same page finds them ready. A cursor names the last skill that was shown, so a page after a change of the
//! registry continues at the right place.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwap;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use rialto_engine::{
    Engine,
    directory::{Directory, Entry},
};
use rialto_model::{backing::Backing, call::Caller, ids::Scope};
use rmcp::model::Tool;

use crate::{aliases::Aliases, builtin_tools, names::Naming, tool};

/// Maximum number of cached lists (project and naming rule); the oldest is evicted.
const MAX_CACHED_LISTS: usize = 64;

/// Maximum number of hidden skills that a page skips, per skill that it shows.
const MAX_SKIPPED_PER_TOOL: usize = 8;

/// Cache of tool lists.
pub(crate) struct ToolCatalogs {
    aliases: Arc<Aliases>,
    kept: ArcSwap<Vec<Arc<ToolCatalog>>>,
}

/// Tools of one project under one naming rule.
pub(crate) struct ToolCatalog {
    scope: Scope,
    naming: Naming,
    aliases: Arc<Aliases>,
    directory: Arc<Directory>,
    /// New names of skills that the client's own rewriting would make equal to an earlier one.
    renamed: HashMap<String, String>,
    /// Tools of each skill by index in the directory, one per name; filled on first read.
    tools: Vec<OnceLock<Box<[Tool]>>>,
}

/// One page of a tool list.
pub(crate) struct ToolPage {
    catalog: Arc<ToolCatalog>,
    /// True when built-in tools come first.
    is_first: bool,
    /// Built-in tools on this page.
    own: Vec<&'static Tool>,
    /// Directory indexes of the skills on this page.
    places: Vec<usize>,
    /// Fixed tools that replace everything else on the page.
    only: Option<&'static [Tool]>,
    /// Cursor of the next page; none on the last.
    pub(crate) next: Option<String>,
}

// === impl ToolCatalogs ===

impl ToolCatalogs {
    pub(crate) fn new(aliases: Arc<Aliases>) -> Self {
        Self { aliases, kept: ArcSwap::from_pointee(Vec::new()) }
    }

    /// List of a project under a naming rule, for the current version of the registry.
    pub(crate) fn of(&self, engine: &Engine, scope: &Scope, naming: Naming) -> Arc<ToolCatalog> {
        let directory = engine.registry().directory(scope);
        let is_meant = |kept: &&Arc<ToolCatalog>| kept.naming == naming && kept.scope == *scope;
        if let Some(known) = self.kept.load().iter().find(is_meant)
            && Arc::ptr_eq(&known.directory, &directory)
        {
            return Arc::clone(known);
        }
        let catalog = Arc::new(ToolCatalog::new(scope.clone(), naming, directory, Arc::clone(&self.aliases)));
        self.kept.rcu(|kept| {
            let others = kept.iter().filter(|other| !is_meant(other)).cloned();
            let mut kept: Vec<_> = others.chain([Arc::clone(&catalog)]).collect();
            kept.drain(..kept.len().saturating_sub(MAX_CACHED_LISTS));
            kept
        });
        catalog
    }
}

// === impl ToolCatalog ===

impl ToolCatalog {
    fn new(scope: Scope, naming: Naming, directory: Arc<Directory>, aliases: Arc<Aliases>) -> Self {
        let renamed = renamed(&directory, naming, &aliases);
        let mut tools = Vec::new();
        tools.resize_with(directory.len(), OnceLock::new);
        Self { scope, naming, aliases, directory, renamed, tools }
    }

    /// Page after `cursor`, or the first page. None for an invalid cursor.
    pub(crate) fn page(
        self: &Arc<Self>,
        engine: &Engine,
        caller: &Caller,
        cursor: Option<&str>,
        size: usize,
    ) -> Option<ToolPage> {
        let first = match cursor {
            None => 0,
            Some(cursor) => self.place_after(&read_cursor(cursor)?),
        };
        let mut page = ToolPage {
            catalog: Arc::clone(self),
            is_first: cursor.is_none(),
            own: Vec::new(),
            places: Vec::new(),
            only: None,
            next: None,
        };
        for place in first..self.directory.len() {
            let Some(entry) = self.directory.at(place) else { break };
            if page.places.len() >= size || place - first >= size.saturating_mul(MAX_SKIPPED_PER_TOOL) {
                let last = place.checked_sub(1).and_then(|last| self.directory.at(last));
                page.next = last.map(|last| write_cursor(&last.canonical));
                break;
            }
            if engine.policies().may_discover(caller, &entry.target()) {
                page.places.push(place);
            }
        }
        Some(page)
    }

    /// Single page with only these tools.
    pub(crate) fn only(self: &Arc<Self>, tools: &'static [Tool]) -> ToolPage {
        ToolPage {
            catalog: Arc::clone(self),
            is_first: true,
            own: Vec::new(),
            places: Vec::new(),
            only: Some(tools),
            next: None,
        }
    }

    /// True for portable schemas.
    pub(crate) const fn is_portable(&self) -> bool {
        self.naming.portable
    }

    /// True when the list has workflows.
    pub(crate) fn has_workflows(&self) -> bool {
        self.directory.listed().any(|entry| matches!(entry.agent.backing, Backing::Flow(_)))
    }

    /// Directory that this list is a view of.
    pub(crate) const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Index of the first skill whose canonical name comes after `name`.
    fn place_after(&self, name: &str) -> usize {
        let (mut low, mut high) = (0, self.directory.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_after = self.directory.at(middle).is_some_and(|entry| entry.canonical.as_str() > name);
            if is_after { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// Tools of the skill at an index, one per name.
    pub(crate) fn tools_at(&self, place: usize) -> &[Tool] {
        let (Some(slot), Some(entry)) = (self.tools.get(place), self.directory.at(place)) else { return &[] };
        slot.get_or_init(|| {
            let names = names_of(entry, self.naming, &self.aliases).into_iter();
            let names = names.map(|name| self.renamed.get(&name).cloned().unwrap_or(name));
            names.map(|name| tool::of_skill(name, entry, self.naming.portable)).collect()
        })
    }
}

// === impl ToolPage ===

impl ToolPage {
    /// Puts built-in tools in front of the first page.
    pub(crate) fn with_own(mut self, own: Vec<&'static Tool>) -> Self {
        self.own = own;
        self
    }

    /// The tools, in order.
    pub(crate) fn tools(&self) -> Vec<&Tool> {
        if let Some(only) = self.only {
            return only.iter().collect();
        }
        let own = self.own.iter().copied().filter(|_| self.is_first);
        let skills = self.places.iter().flat_map(|place| self.catalog.tools_at(*place));
        own.chain(skills).collect()
    }
}

/// Maps the names that collide after the client's rewriting to new ones.
fn renamed(directory: &Directory, naming: Naming, aliases: &Aliases) -> HashMap<String, String> {
    let rule = naming.rule;
    if !rule.rewrites() {
        return HashMap::new();
    }
    let mut taken: HashSet<String> = builtin_tools::NAMES.map(str::to_owned).into();
    let mut renamed = HashMap::new();
    for entry in directory.listed() {
        for name in names_of(entry, naming, aliases) {
            if !taken.insert(rule.rewritten(&name)) {
                let other = rule.cut(&name, &entry.canonical);
                taken.insert(rule.rewritten(&other));
                renamed.insert(name, other);
            }
        }
    }
    renamed
}

/// Names of a skill in the list: its alias, or its regular names.
fn names_of(entry: &Entry, naming: Naming, aliases: &Aliases) -> Vec<String> {
    match aliases.of(&entry.canonical, &entry.legacy) {
        Some(alias) => vec![alias.to_owned()],
        None => naming.names(entry),
    }
}

fn write_cursor(last: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(last)
}

fn read_cursor(cursor: &str) -> Option<String> {
    String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}
