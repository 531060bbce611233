//! The keys of an object, taken by a table.

use super::{
    diagnostics::Diagnostics,
    tree::{ObjectMember, SourceTree, SourceValue},
};
use crate::{definition::SourcePosition, problem::ProblemCode, schema_keys::SchemaKey, suggest::nearest};

/// The members of an object by the keys of some tables.
pub(crate) struct ObjectFields<'a> {
    /// Position of the object.
    pub(crate) place: SourcePosition,
    found: Vec<(&'static SchemaKey, &'a ObjectMember)>,
}

// === impl ObjectFields ===

impl<'a> ObjectFields<'a> {
    /// Takes the keys in the tables. Unknown and duplicate keys are reported.
    pub(crate) fn from_members(
        place: SourcePosition,
        members: &'a [ObjectMember],
        tables: &[&'static [SchemaKey]],
        diagnostics: &mut Diagnostics,
    ) -> Self {
        let mut fields = Self { place, found: Vec::new() };
        fields.add_members(members, tables, diagnostics);
        fields
    }

    /// Takes the keys of a tree, which must be an object.
    pub(crate) fn from_tree(
        tree: &'a SourceTree,
        what: &str,
        keys: &'static [SchemaKey],
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let members = diagnostics.expect_object(tree, what)?;
        Some(Self::from_members(tree.place, members, &[keys], diagnostics))
    }

    /// Takes more members.
    pub(crate) fn add_members(
        &mut self,
        members: &'a [ObjectMember],
        tables: &[&'static [SchemaKey]],
        diagnostics: &mut Diagnostics,
    ) {
        for member in members {
            let key = tables.iter().copied().flatten().find(|key| key.has_spelling(&member.name));
            match key {
                None => report_unknown_key(member, tables, diagnostics),
                Some(key) => self.insert(key, member, diagnostics),
            }
        }
    }

    /// The value of a key, unless there is none or it is null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a SourceTree> {
        let found = self.found.iter().find(|(key, _)| key.name == name);
        found.map(|(_, member)| &member.tree).filter(|tree| !matches!(tree.value, SourceValue::Null))
    }

    fn insert(&mut self, key: &'static SchemaKey, member: &'a ObjectMember, diagnostics: &mut Diagnostics) {
        match self.found.iter().find(|(known, _)| known.name == key.name) {
            None => self.found.push((key, member)),
            Some((_, first)) => {
                let (name, at) = (&member.name, first.place);
                let message = if first.name == *name {
                    format!("\"{name}\" is repeated, first at {at}")
                } else {
                    format!("\"{name}\" is the same as \"{}\" at {at}; write one of them", first.name)
                };
                diagnostics.problems.add(member.place, ProblemCode::DuplicateKey, message);
            }
        }
    }
}

fn report_unknown_key(member: &ObjectMember, tables: &[&'static [SchemaKey]], diagnostics: &mut Diagnostics) {
    if diagnostics.problems.is_full() {
        return diagnostics.problems.add(member.place, ProblemCode::UnknownKey, "");
    }
    let known: Vec<String> = tables.iter().copied().flatten().flat_map(SchemaKey::spellings).collect();
    let meant = nearest(&member.name, known.iter().map(String::as_str));
    let help = match meant {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => {
            let names: Vec<&str> = tables.iter().copied().flatten().map(|key| key.name).collect();
            format!("known are {}", names.join(", "))
        }
    };
    let message = format!("unknown key \"{}\"; {help}", member.name);
    diagnostics.problems.add(member.place, ProblemCode::UnknownKey, message);
}
