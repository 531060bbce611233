//! Finds the skill that a client means by a tool's name.
//!
//! Canonical names and legacy aliases are in the registry's own directory. A name that was cut or made distinct for
//! some client ends in a hash, and the hash finds the skill again, whoever calls it.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use arc_swap::ArcSwapOption;
use rialto_engine::{
    Engine,
    directory::{Directory, Entry},
    search::distance,
};
use rialto_model::{
    call::{Caller, Target},
    name::slug,
};

use crate::{aliases::Aliases, names};

/// How many names a caller is offered in place of one that does not exist.
const OFFERED: usize = 3;

/// How many skills are looked at for names to offer.
const LOOKED_AT: usize = 20_000;

/// Finds skills by the names they were listed under.
pub(crate) struct Finder {
    aliases: Arc<Aliases>,
    hashes: ArcSwapOption<Hashes>,
}

/// The skills of one directory by the hash that a cut name ends in.
struct Hashes {
    directory: Arc<Directory>,
    places: OnceLock<HashMap<String, Vec<u32>>>,
}

// === impl Finder ===

impl Finder {
    pub(crate) const fn new(aliases: Arc<Aliases>) -> Self {
        Self { aliases, hashes: ArcSwapOption::const_empty() }
    }

    /// The skill that is called `name`, if the caller may see it.
    pub(crate) fn find(&self, engine: &Engine, caller: &Caller, name: &str) -> Option<Target> {
        let directory = engine.registry().directory(&caller.scope);
        let given = || self.aliases.skill(name).and_then(|skill| directory.find(skill));
        let target = match directory.find(name).or_else(given) {
            Some(entry) => entry.target(),
            None => self.find_cut(&directory, name)?,
        };
        engine.may_discover(caller, &target).then_some(target)
    }

    fn find_cut(&self, directory: &Arc<Directory>, name: &str) -> Option<Target> {
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

    fn hashes_of(&self, directory: &Arc<Directory>) -> Arc<Hashes> {
        match self.hashes.load_full() {
            Some(known) if Arc::ptr_eq(&known.directory, directory) => known,
            _ => {
                let fresh = Arc::new(Hashes { directory: Arc::clone(directory), places: OnceLock::new() });
                self.hashes.store(Some(Arc::clone(&fresh)));
                fresh
            }
        }
    }
}

/// Names that a caller may have meant, the likeliest first.
pub(crate) fn near(engine: &Engine, caller: &Caller, name: &str, also: &[&str]) -> Vec<String> {
    let directory = engine.registry().directory(&caller.scope);
    let wanted = slug(name);
    let far = wanted.len() / 4 + 1;
    let mut near: Vec<(usize, String)> = Vec::new();
    for own in also {
        near.extend(distance(&wanted, own, far).map(|distance| (distance, (*own).to_owned())));
    }
    for entry in directory.listed().take(LOOKED_AT) {
        let canonical = slug(&entry.canonical);
        let by_skill = slug(entry.skill.id.as_str()) == wanted;
        let found = if by_skill { Some(1) } else { distance(&wanted, &canonical, far) };
        let found = found.or_else(|| distance(&wanted, &entry.legacy, far));
        if let Some(distance) = found
            && engine.may_discover(caller, &entry.target())
        {
            near.push((distance, entry.canonical.clone()));
        }
    }
    near.sort();
    near.into_iter().map(|(_, name)| name).take(OFFERED).collect()
}
