//! The keys of an object, taken by a table.

use super::{
    notes::Notes,
    tree::{Member, Tree, Value},
};
use crate::{definition::Place, keys::Key, problem::Code, suggest::nearest};

/// The members of an object by the keys of some tables.
pub(crate) struct Fields<'a> {
    /// Where the object stands.
    pub(crate) place: Place,
    found: Vec<(&'static Key, &'a Member)>,
}

// === impl Fields ===

impl<'a> Fields<'a> {
    /// Takes what the tables know. The rest is told, and so is what stands twice.
    pub(crate) fn of(
        place: Place,
        members: &'a [Member],
        tables: &[&'static [Key]],
        notes: &mut Notes,
    ) -> Self {
        let mut fields = Self { place, found: Vec::new() };
        fields.take(members, tables, notes);
        fields
    }

    /// The same for a tree, which must be an object.
    pub(crate) fn of_tree(
        tree: &'a Tree,
        what: &str,
        keys: &'static [Key],
        notes: &mut Notes,
    ) -> Option<Self> {
        let members = notes.object(tree, what)?;
        Some(Self::of(tree.place, members, &[keys], notes))
    }

    /// Takes more members.
    pub(crate) fn take(&mut self, members: &'a [Member], tables: &[&'static [Key]], notes: &mut Notes) {
        for member in members {
            let key = tables.iter().copied().flatten().find(|key| key.is_called(&member.name));
            match key {
                None => unknown(member, tables, notes),
                Some(key) => self.put(key, member, notes),
            }
        }
    }

    /// The value of a key, unless there is none or it is null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Tree> {
        let found = self.found.iter().find(|(key, _)| key.name == name);
        found.map(|(_, member)| &member.tree).filter(|tree| !matches!(tree.value, Value::Null))
    }

    fn put(&mut self, key: &'static Key, member: &'a Member, notes: &mut Notes) {
        match self.found.iter().find(|(known, _)| known.name == key.name) {
            None => self.found.push((key, member)),
            Some((_, first)) => {
                let (name, at) = (&member.name, first.place);
                let message = if first.name == *name {
                    format!("\"{name}\" stands here a second time, first at {at}")
                } else {
                    format!("\"{name}\" is the same as \"{}\" at {at}; write one of them", first.name)
                };
                notes.problems.add(member.place, Code::DuplicateKey, message);
            }
        }
    }
}

fn unknown(member: &Member, tables: &[&'static [Key]], notes: &mut Notes) {
    let known: Vec<String> = tables.iter().copied().flatten().flat_map(Key::spellings).collect();
    let meant = nearest(&member.name, known.iter().map(String::as_str));
    let help = match meant {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => {
            let names: Vec<&str> = tables.iter().copied().flatten().map(|key| key.name).collect();
            format!("known are {}", names.join(", "))
        }
    };
    let message = format!("nobody knows the key \"{}\" here; {help}", member.name);
    notes.problems.add(member.place, Code::UnknownKey, message);
}
