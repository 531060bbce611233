//! Tool lookup: finds the skill for a tool name.
//!
//! Canonical names and legacy aliases are in the registry's directory. A name that was truncated or made unique for some client ends in
//! a hash, and the hash identifies the skill for any client.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwapOption;
use rialto_engine::{
    Engine,
    directory::{Directory, Entry},
    search::edit_distance,
};
use rialto_model::{
    call::{CallTarget, Caller},
    name::slug,
};

use crate::{aliases::Aliases, names};

/// Maximum number of similar names suggested for an unknown one.
const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of skills that are compared for suggestions.
const MAX_COMPARED_SKILLS: usize = 20_000;

/// Finds skills by their listed names.
pub(crate) struct ToolLookup {
    aliases: Arc<Aliases>,
    hashes: ArcSwapOption<NameHashes>,
}

/// Skills of one directory by the hash of a truncated name.
struct NameHashes {
    directory: Arc<Directory>,
    places: OnceLock<HashMap<String, Vec<u32>>>,
}

// === impl ToolLookup ===

impl ToolLookup {
    pub(crate) const fn new(aliases: Arc<Aliases>) -> Self {
        Self { aliases, hashes: ArcSwapOption::const_empty() }
    }

    /// Skill named `name`, if it is visible to the caller.
    pub(crate) fn find(&self, engine: &Engine, caller: &Caller, name: &str) -> Option<CallTarget> {
        let directory = engine.registry().directory(&caller.scope);
        let given = || self.aliases.skill(name).and_then(|skill| directory.find(skill));
        let target = match directory.find(name).or_else(given) {
            Some(entry) => entry.target(),
            None => self.find_cut(&directory, name)?,
        };
        engine.policies().may_discover(caller, &target).then_some(target)
    }

    fn find_cut(&self, directory: &Arc<Directory>, name: &str) -> Option<CallTarget> {
        let (kept, hash) = names::hash_at_end(name)?;
        let hashes = self.hashes_of(directory);
        let places = hashes.places.get_or_init(|| {
            let mut places: HashMap<String, Vec<u32>> = HashMap::new();
            for (place, entry) in (0..).zip(directory.entries()) {
                places.entry(names::hash(&entry.canonical)).or_default().push(place);
            }
            places
        });
        let mut entries =
            places.get(hash)?.iter().filter_map(|place| directory.entries().get(*place as usize));
        let is_meant = |entry: &&Entry| entry.canonical.starts_with(kept) || entry.legacy.starts_with(kept);
        entries.find(is_meant).map(Entry::target)
    }

    fn hashes_of(&self, directory: &Arc<Directory>) -> Arc<NameHashes> {
        match self.hashes.load_full() {
            Some(known) if Arc::ptr_eq(&known.directory, directory) => known,
            _ => {
                let fresh =
                    Arc::new(NameHashes { directory: Arc::clone(directory), places: OnceLock::new() });
                self.hashes.store(Some(Arc::clone(&fresh)));
                fresh
            }
        }
    }
}

/// Similar names visible to the caller, the most similar first.
pub(crate) fn near(engine: &Engine, caller: &Caller, name: &str, also: &[&str]) -> Vec<String> {
    let directory = engine.registry().directory(&caller.scope);
    let wanted = slug(name);
    let far = wanted.len() / 4 + 1;
    let mut near: Vec<(usize, String)> = Vec::new();
    for own in also {
        near.extend(edit_distance(&wanted, own, far).map(|distance| (distance, (*own).to_owned())));
    }
    for entry in directory.listed().take(MAX_COMPARED_SKILLS) {
        let canonical = slug(&entry.canonical);
        let by_skill = slug(entry.skill.id.as_str()) == wanted;
        let found = if by_skill { Some(1) } else { edit_distance(&wanted, &canonical, far) };
        let found = found.or_else(|| edit_distance(&wanted, &entry.legacy, far));
        if let Some(distance) = found
            && engine.policies().may_discover(caller, &entry.target())
        {
            near.push((distance, entry.canonical.clone()));
        }
    }
    near.sort();
    near.into_iter().map(|(_, name)| name).take(MAX_SUGGESTIONS).collect()
}
