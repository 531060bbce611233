//! Readable differences between two cards.
//!
//! A remote that rewrites what its skills say about themselves can put words into a model's prompt, so a changed
//! description or schema is shown, not just counted.

use std::borrow::Cow;

use rialto_model::card::{Card, Skill};
use serde::{Deserialize, Serialize};

/// The difference between two cards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardDiff {
    /// Skills that are new.
    pub added: Vec<String>,
    /// Skills that are gone.
    pub removed: Vec<String>,
    /// Changes of the other members.
    pub changed: Vec<Change>,
}

/// One member that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// `card`, or the skill's id.
    pub of: String,
    /// Name of the member.
    pub member: Cow<'static, str>,
    /// Value before.
    pub before: String,
    /// Kind of backend and its configuration.
    pub after: String,
}

// === impl CardDiff ===

impl CardDiff {
    /// Compares two cards.
    pub fn between(before: &Card, after: &Card) -> Self {
        let mut diff = Self::default();
        diff.note("card", "name", &before.name, &after.name);
        diff.note("card", "description", &before.description, &after.description);
        diff.note("card", "interfaces", &interfaces(before), &interfaces(after));
        for skill in &after.skills {
            match before.skill(skill.id.as_str()) {
                Some(old) => diff.note_skill(old, skill),
                None => diff.added.push(skill.id.to_string()),
            }
        }
        let gone = before.skills.iter().filter(|skill| after.skill(skill.id.as_str()).is_none());
        diff.removed = gone.map(|skill| skill.id.to_string()).collect();
        diff
    }

    /// True if nothing has changed that Rialto shows.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }

    fn note_skill(&mut self, before: &Skill, after: &Skill) {
        let of = after.id.as_str();
        let schema = |skill: &Skill| skill.input_schema.as_ref().map(ToString::to_string).unwrap_or_default();
        self.note(of, "name", &before.name, &after.name);
        self.note(of, "description", &before.description, &after.description);
        self.note(of, "tags", &before.tags.join(", "), &after.tags.join(", "));
        self.note(of, "examples", &before.examples.join(", "), &after.examples.join(", "));
        self.note(of, "inputSchema", &schema(before), &schema(after));
        let names = before.extra.iter().chain(after.extra.iter()).map(|(name, _)| name);
        let mut noted = Vec::new();
        for name in names.filter(|name| before.extra.get(name) != after.extra.get(name)) {
            if !noted.contains(&name) {
                noted.push(name);
                let text = |skill: &Skill| skill.extra.get(name).map(ToString::to_string).unwrap_or_default();
                self.note(of, name.to_owned(), &text(before), &text(after));
            }
        }
    }

    fn note(&mut self, of: &str, member: impl Into<Cow<'static, str>>, before: &str, after: &str) {
        if before != after {
            let (before, after) = (before.to_owned(), after.to_owned());
            self.changed.push(Change { of: of.to_owned(), member: member.into(), before, after });
        }
    }
}

impl std::fmt::Display for CardDiff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for id in &self.added {
            writeln!(f, "+ skill {id}")?;
        }
        for id in &self.removed {
            writeln!(f, "- skill {id}")?;
        }
        for change in &self.changed {
            writeln!(f, "~ {} of {}", change.member, change.of)?;
            writeln!(f, "  - {}", change.before)?;
            writeln!(f, "  + {}", change.after)?;
        }
        Ok(())
    }
}

fn interfaces(card: &Card) -> String {
    let lines = card.interfaces.iter().map(|face| format!("{} ({})", face.url, face.dialect));
    lines.collect::<Vec<_>>().join(", ")
}
