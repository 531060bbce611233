//! What only the program can do: it knows where policies are kept, and how cards and credentials are read.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_api_types::policies::PolicyPlace;
use rialto_engine::registry::Deployment;
use rialto_model::{
    agent::Agent,
    card::Card,
    credential,
    failure::Failure,
    ids::{OrgId, Scope},
    webhook::Webhook,
};
use rialto_policy::{Source, Template};

/// Which policies an operation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyScope {
    /// Who asks.
    pub by: String,
    /// The org whose policies they are.
    pub org: OrgId,
    /// What becomes of policies that apply to all orgs.
    pub shared: SharedPolicies,
}

/// What becomes of policies that apply to all orgs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedPolicies {
    /// They are neither shown nor changed.
    Hidden,
    /// They are shown and changed where the org has none of that name; new ones belong to the org.
    Included,
    /// They alone are meant.
    Only,
}

/// A text of policies that was changed.
#[derive(Clone, Debug)]
pub struct KeptPolicy {
    /// Its name.
    pub name: String,
    /// What it is listed by: the name of a file, or `store:NAME`.
    pub listed: String,
    /// The org that it belongs to; none if it applies to all orgs.
    pub org: Option<OrgId>,
    /// Where it is: a path, or `store:NAME`.
    pub place: String,
}

/// A text that a policy had.
#[derive(Clone, Debug)]
pub struct PolicyVersion {
    /// The policy's name.
    pub name: String,
    /// Where it is kept.
    pub shelf: PolicyPlace,
    /// What it is called by.
    pub version: i64,
    /// When it was made or replaced.
    pub at: Timestamp,
    /// By whom, where that is known.
    pub by: Option<String>,
    /// What it said; nothing where it was taken away.
    pub text: Option<String>,
}

/// A secret in the store, without itself.
#[derive(Clone, Debug)]
pub struct SecretRow {
    /// Its name.
    pub name: String,
    /// When it was set.
    pub set_at: Timestamp,
    /// The key that opens it, by its name.
    pub key: String,
}

// === impl PolicyScope ===

impl PolicyScope {
    /// Whether policies of this owner are meant.
    pub fn includes(&self, owner: Option<&OrgId>) -> bool {
        match owner {
            Some(org) => *org == self.org && self.shared != SharedPolicies::Only,
            None => self.shared != SharedPolicies::Hidden,
        }
    }

    /// The owner of policies that are new.
    pub fn owner(&self) -> Option<OrgId> {
        (self.shared != SharedPolicies::Only).then(|| self.org.clone())
    }
}

/// What the program does for the console.
#[async_trait]
pub trait Office: Send + Sync {
    /// The texts of all policies in force, by their names.
    async fn policies(&self) -> Result<Vec<Source>, Failure>;

    /// Keeps a text under a name, if all that is then in force holds up.
    async fn save_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        text: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure>;

    /// Keeps what a template says, under a name or under one of its own.
    async fn add_policy(
        &self,
        scope: &PolicyScope,
        template: &Template<'_>,
        name: Option<&str>,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure>;

    /// Takes a text away.
    async fn remove_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure>;

    /// The texts that a policy had, newest first.
    async fn policy_history(
        &self,
        scope: &PolicyScope,
        name: &str,
        shelf: Option<PolicyPlace>,
    ) -> Result<Vec<PolicyVersion>, Failure>;

    /// Makes an older text of a policy the one in force.
    async fn restore_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        version: i64,
        shelf: Option<PolicyPlace>,
    ) -> Result<KeptPolicy, Failure>;

    /// Takes away the policies that are about nothing but an agent that is gone.
    async fn forget_policies(&self, agent: &Agent) -> Result<(), Failure>;

    /// Removes all policies of an org.
    async fn forget_org_policies(&self, org: &OrgId) -> Result<(), Failure>;

    /// Reads a card.
    fn read_card(&self, text: &str) -> Option<Card>;

    /// How an agent's secret is shown to it and where it comes from; never what it is.
    fn credential(&self, agent: &Agent) -> Option<String>;

    /// How an agent's secret is shown to it, or why it cannot be.
    fn shown_as(&self, agent: &Agent) -> Option<String>;

    /// A token that nobody can guess.
    fn fresh_token(&self) -> Result<String, Failure>;

    /// What is to be deployed in a project, as a program describes it.
    fn read_deployment(&self, described: &str, scope: &Scope) -> Result<Deployment, Failure>;

    /// Who works at this machine.
    fn operator(&self) -> String;

    /// How the command line is called at this machine: `rialto`, and where everything is kept when that is not the usual place.
    fn command(&self) -> String;

    /// Makes the key that a webhook's events are signed with, and keeps it. Answers where, and the key.
    fn make_webhook_key(&self, id: &str) -> Result<(credential::SecretSource, String), Failure>;

    /// Forgets such a key, if it was made here.
    fn forget_webhook_key(&self, id: &str) -> Result<(), Failure>;

    /// Whether what a variable of the environment holds is a key; one that is not set may be set later.
    async fn check_webhook_key(&self, variable: &str) -> Result<(), Failure>;

    /// Sends an event that says it is a test.
    async fn try_webhook(&self, webhook: &Webhook) -> Result<(), Failure>;

    /// The secrets in the store, without themselves.
    async fn secrets(&self) -> Result<Vec<SecretRow>, Failure>;

    /// Keeps a secret, encrypted.
    async fn set_secret(&self, name: &str, secret: &credential::Secret) -> Result<(), Failure>;

    /// Forgets one.
    async fn remove_secret(&self, name: &str) -> Result<(), Failure>;
}
