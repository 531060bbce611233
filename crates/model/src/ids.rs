//! Names of things. Each is its own type, so that an agent's id is never passed where a task's is meant.
//!
//! A call's names go into its task, its announcements and its records: a copy of a name is shared, not made.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        #[schemars(inline)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Text, shared without a copy.
            pub fn shared(&self) -> Arc<str> {
                Arc::clone(&self.0)
            }
        }

        impl<T: AsRef<str>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.as_ref().into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// Owner of everything below it.
    OrgId
);
text_id!(
    /// A part of an org; `main` when none is named.
    ProjectId
);
text_id!(
    /// One registered agent (`agt_…`).
    AgentId
);
text_id!(
    /// One bearer token that was made here (`tok_…`), by its name; the token itself is not kept.
    TokenId
);
text_id!(
    /// One skill of an agent, spelt exactly as its card spells it.
    SkillId
);
text_id!(
    /// One task in our journal (`task_…`). The remote side has its own name for it.
    TaskId
);
text_id!(
    /// A conversation: tasks that belong together.
    ContextId
);
text_id!(
    /// One choice of who does some work (`dsp_…`).
    DispatchId
);

text_id!(
    /// One question whether something may be done (`apr_…`).
    ApprovalId
);

/// A process that works on tasks, for as long as it lives. Zero is nobody.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ProcessId(u64);

/// The org and project something belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Scope {
    /// The org.
    pub org: OrgId,
    /// The project inside the org.
    pub project: ProjectId,
}

// === impl Scope ===

impl Default for Scope {
    fn default() -> Self {
        Self { org: OrgId::from("default"), project: ProjectId::from("main") }
    }
}

// === impl AgentId ===

impl AgentId {
    /// A new id, later than every one before it.
    pub fn fresh() -> Self {
        Self::from(["agt_", &fresh()].concat())
    }
}

// === impl TaskId ===

impl TaskId {
    /// A new id, later than every one before it.
    pub fn fresh() -> Self {
        Self::from(["task_", &fresh()].concat())
    }
}

// === impl ContextId ===

impl ContextId {
    /// A new id, later than every one before it.
    pub fn fresh() -> Self {
        Self::from(["ctx_", &fresh()].concat())
    }
}

// === impl DispatchId ===

impl DispatchId {
    /// A new id, later than every one before it.
    pub fn fresh() -> Self {
        Self::from(["dsp_", &fresh()].concat())
    }
}

// === impl ApprovalId ===

impl ApprovalId {
    /// A new id, later than every one before it.
    pub fn fresh() -> Self {
        Self::from(["apr_", &fresh()].concat())
    }
}

// === impl ProcessId ===

impl ProcessId {
    /// Nobody.
    pub const NOBODY: Self = Self(0);

    /// A number that no other process has. It is positive where numbers have a sign.
    pub fn fresh() -> Self {
        Self(u64::try_from(fresh_number() & u128::from(u64::MAX >> 1)).unwrap_or(1))
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<u64> for ProcessId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// Returns whether `name` can be an org or a project: it stands in addresses as it is, and is never taken for anything else.
pub fn is_slug(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    name.len() <= 64 && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_word)
}

/// An id that sorts by the time it was made, for whatever needs one that has no type of its own.
pub fn fresh() -> String {
    new().simple().encode_lower(&mut Uuid::encode_buffer()).to_owned()
}

/// New id as a number. Its last 64 bits are random but for two, which are never both zero.
pub(crate) fn fresh_number() -> u128 {
    new().as_u128()
}

#[expect(clippy::disallowed_methods, reason = "this is the one place ids are made")]
fn new() -> Uuid {
    Uuid::now_v7()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_stands_in_an_address_as_it_is() {
        for good in ["default", "acme-2", "A", "7_7"] {
            assert!(is_slug(good), "{good}");
        }
        for wrong in ["", "-a", "_a2a", "a/b", "a.b", "a%2e", "\u{fc}ber", &"a".repeat(65)] {
            assert!(!is_slug(wrong), "{wrong}");
        }
    }
}
