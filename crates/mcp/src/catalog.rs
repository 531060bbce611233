//! The list of tools, prepared once per version of the registry and way of naming.
//!
//! Nothing here walks over all skills for one page: a page prepares the tools it shows, once, and the next reader of
//! the same page finds them ready. A cursor names the last skill that was shown, so a page after a change of the
//! registry goes on at the right place.

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
use rialto_model::{call::Caller, deployed::Backing, ids::Scope};
use rmcp::model::Tool;

use crate::{aliases::Aliases, names::Naming, own, tool};

/// Lists are kept for this many projects and ways of naming; one more forgets the oldest.
const KEPT: usize = 64;

/// How many skills that its caller may not see a page steps over, for each one it shows.
const STEPS: usize = 8;

/// All lists that were asked for lately.
pub(crate) struct Catalogs {
    aliases: Arc<Aliases>,
    kept: ArcSwap<Vec<Arc<Catalog>>>,
}

/// The tools of one project, named one way.
pub(crate) struct Catalog {
    scope: Scope,
    naming: Naming,
    aliases: Arc<Aliases>,
    directory: Arc<Directory>,
    /// The names of skills that the client's rewriting would make equal to an earlier one.
    renamed: HashMap<String, String>,
    /// By place in the directory: a skill's tools, one for each name. Filled as it is read.
    tools: Vec<OnceLock<Box<[Tool]>>>,
}

/// A piece of a list.
pub(crate) struct Page {
    catalog: Arc<Catalog>,
    /// Whether our own tools come first.
    is_first: bool,
    /// Those of our own that are listed.
    own: Vec<&'static Tool>,
    /// The places of the skills that are on it.
    places: Vec<usize>,
    /// What is on it in place of all that.
    only: Option<&'static [Tool]>,
    /// How to ask for the next piece; none when this is the last.
    pub(crate) next: Option<String>,
}

// === impl Catalogs ===

impl Catalogs {
    pub(crate) fn new(aliases: Arc<Aliases>) -> Self {
        Self { aliases, kept: ArcSwap::from_pointee(Vec::new()) }
    }

    /// The list for a project, named one way, as the registry is now.
    pub(crate) fn of(&self, engine: &Engine, scope: &Scope, naming: Naming) -> Arc<Catalog> {
        let directory = engine.registry().directory(scope);
        let is_meant = |kept: &&Arc<Catalog>| kept.naming == naming && kept.scope == *scope;
        if let Some(known) = self.kept.load().iter().find(is_meant)
            && Arc::ptr_eq(&known.directory, &directory)
        {
            return Arc::clone(known);
        }
        let catalog = Arc::new(Catalog::new(scope.clone(), naming, directory, Arc::clone(&self.aliases)));
        self.kept.rcu(|kept| {
            let others = kept.iter().filter(|other| !is_meant(other)).cloned();
            let mut kept: Vec<_> = others.chain([Arc::clone(&catalog)]).collect();
            kept.drain(..kept.len().saturating_sub(KEPT));
            kept
        });
        catalog
    }
}

// === impl Catalog ===

impl Catalog {
    fn new(scope: Scope, naming: Naming, directory: Arc<Directory>, aliases: Arc<Aliases>) -> Self {
        let renamed = renamed(&directory, naming, &aliases);
        let mut tools = Vec::new();
        tools.resize_with(directory.len(), OnceLock::new);
        Self { scope, naming, aliases, directory, renamed, tools }
    }

    /// The piece after `cursor`, or the first. None when the cursor is not one of ours.
    pub(crate) fn page(
        self: &Arc<Self>,
        engine: &Engine,
        caller: &Caller,
        cursor: Option<&str>,
        size: usize,
    ) -> Option<Page> {
        let first = match cursor {
            None => 0,
            Some(cursor) => self.place_after(&read_cursor(cursor)?),
        };
        let mut page = Page {
            catalog: Arc::clone(self),
            is_first: cursor.is_none(),
            own: Vec::new(),
            places: Vec::new(),
            only: None,
            next: None,
        };
        for place in first..self.directory.len() {
            let Some(entry) = self.directory.at(place) else { break };
            if page.places.len() >= size || place - first >= size.saturating_mul(STEPS) {
                let last = place.checked_sub(1).and_then(|last| self.directory.at(last));
                page.next = last.map(|last| write_cursor(&last.canonical));
                break;
            }
            if engine.may_discover(caller, &entry.target()) {
                page.places.push(place);
            }
        }
        Some(page)
    }

    /// The one page of a list with only these tools.
    pub(crate) fn only(self: &Arc<Self>, tools: &'static [Tool]) -> Page {
        Page {
            catalog: Arc::clone(self),
            is_first: true,
            own: Vec::new(),
            places: Vec::new(),
            only: Some(tools),
            next: None,
        }
    }

    /// Whether its schemas are portable ones.
    pub(crate) const fn is_portable(&self) -> bool {
        self.naming.portable
    }

    /// Whether it lists workflows.
    pub(crate) fn has_workflows(&self) -> bool {
        self.directory.listed().any(|entry| matches!(entry.agent.backing, Backing::Flow(_)))
    }

    /// The registry's own list, which this is a view of.
    pub(crate) const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The place of the first skill whose canonical name comes after `name`.
    fn place_after(&self, name: &str) -> usize {
        let (mut low, mut high) = (0, self.directory.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_after = self.directory.at(middle).is_some_and(|entry| entry.canonical.as_str() > name);
            if is_after { high = middle } else { low = middle + 1 }
        }
        low
    }

    /// The tools of the skill at a place, one for each name.
    pub(crate) fn tools_at(&self, place: usize) -> &[Tool] {
        let (Some(slot), Some(entry)) = (self.tools.get(place), self.directory.at(place)) else { return &[] };
        slot.get_or_init(|| {
            let names = names_of(entry, self.naming, &self.aliases).into_iter();
            let names = names.map(|name| self.renamed.get(&name).cloned().unwrap_or(name));
            names.map(|name| tool::of_skill(name, entry, self.naming.portable)).collect()
        })
    }
}

// === impl Page ===

impl Page {
    /// The same, with tools of ours in front of the first page.
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

/// New names for skills whose names would be equal once the client has rewritten them, by the name they would have.
fn renamed(directory: &Directory, naming: Naming, aliases: &Aliases) -> HashMap<String, String> {
    let rule = naming.rule;
    if !rule.rewrites() {
        return HashMap::new();
    }
    let mut taken: HashSet<String> = own::NAMES.map(str::to_owned).into();
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

/// The names a skill is listed under: the one that it was given, or those that it has.
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
