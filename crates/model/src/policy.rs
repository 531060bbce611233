//! Policies that are kept in the store, so that everybody who uses it goes by them.
//!
//! They are text to the store: they are validated together with all active policies before a change. That the
//! rest is still what it was then is what `expected` is for.

use jiff::Timestamp;

/// Number of versions kept of one policy, the newest.
pub const MAX_POLICY_VERSIONS: usize = 50;

/// The policies as they are at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicySet {
    /// The number of the last change of any of them; zero when there never was one.
    pub version: u64,
    /// Active policies, by name.
    pub policies: Vec<StoredPolicy>,
}

/// One text of policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPolicy {
    /// Its name.
    pub name: String,
    /// The policies.
    pub text: String,
}

/// A change of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyChange {
    /// Name or id.
    pub name: String,
    /// New text; none removes the policy.
    pub text: Option<String>,
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub by: String,
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPolicyChange {
    /// The number of the change: later ones are higher, whichever policy they are of.
    pub version: u64,
    /// The change.
    pub change: PolicyChange,
}
