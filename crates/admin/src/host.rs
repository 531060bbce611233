//! Host of the administration: the operations that only the program can do, because they need its files, keys and network.
//!
//! [`AdminHost`] is the one port. Policies, webhook keys and secrets are traits of their own below it.

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
use rialto_policy::{PolicySource, PolicyTemplate};

/// Policies that an operation may read and change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyScope {
    /// Name of the caller.
    pub by: String,
    /// Org of the caller.
    pub org: OrgId,
    /// Treatment of policies that apply to all orgs.
    pub shared: SharedPolicies,
}

/// Treatment of policies that apply to all orgs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedPolicies {
    /// They are neither shown nor changed.
    Hidden,
    /// They are shown and changed where the org has none of that name; new ones belong to the org.
    Included,
    /// The operation is about them alone.
    Only,
}

/// Policy text that was saved, restored or removed.
#[derive(Clone, Debug)]
pub struct ChangedPolicy {
    /// Name.
    pub name: String,
    /// Name in lists: the name of a file, or `store:NAME`.
    pub listed: String,
    /// Org it belongs to; none if it applies to all orgs.
    pub org: Option<OrgId>,
    /// Path of its file, or `store:NAME`.
    pub location: String,
}

/// Earlier version of a policy text.
#[derive(Clone, Debug)]
pub struct PolicyHistoryEntry {
    /// Name of the policy text.
    pub name: String,
    /// Place it is kept in.
    pub place: PolicyPlace,
    /// Number of the version.
    pub version: i64,
    /// Time it was saved or replaced.
    pub at: Timestamp,
    /// Name of its author, if known.
    pub by: Option<String>,
    /// Cedar text; none if it was removed.
    pub text: Option<String>,
}

/// Secret in the store, without its value.
#[derive(Clone, Debug)]
pub struct SecretRow {
    /// Name.
    pub name: String,
    /// Time it was set.
    pub set_at: Timestamp,
    /// Name of the key it is encrypted with.
    pub key: String,
}

// === impl PolicyScope ===

impl PolicyScope {
    /// Whether policies of this owner are included.
    pub fn includes(&self, owner: Option<&OrgId>) -> bool {
        match owner {
            Some(org) => *org == self.org && self.shared != SharedPolicies::Only,
            None => self.shared != SharedPolicies::Hidden,
        }
    }

    /// Owner of new policies.
    pub fn owner(&self) -> Option<OrgId> {
        (self.shared != SharedPolicies::Only).then(|| self.org.clone())
    }
}

/// Operations of the program that administration needs.
pub trait AdminHost: PolicyHost + WebhookHost + SecretHost {
    /// Parses an agent card; none if it is invalid.
    fn read_card(&self, text: &str) -> Option<Card>;

    /// Description of an agent's credential by its scheme and source, without the secret.
    fn describe_credential(&self, agent: &Agent) -> Option<String>;

    /// Form in which an agent's secret is sent, or the reason why it cannot be.
    fn describe_auth_scheme(&self, agent: &Agent) -> Option<String>;

    /// Creates a random bearer token.
    fn new_token(&self) -> Result<String, Failure>;

    /// Parses the description of a deployment in a project.
    fn read_deployment(&self, described: &str, scope: &Scope) -> Result<Deployment, Failure>;

    /// Name of the operator at the server's machine.
    fn operator_name(&self) -> String;

    /// Command line of the program on this machine, with `--data` if the data folder is not the default one.
    fn cli_command(&self) -> String;
}

/// Storage of policy texts.
#[async_trait]
pub trait PolicyHost: Send + Sync {
    /// All active policy texts, by name.
    async fn policy_sources(&self) -> Result<Vec<PolicySource>, Failure>;

    /// Saves a text under a name, if all active policies are then valid.
    async fn save_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        text: &str,
        place: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure>;

    /// Saves the policy of a template, under this name or one made from the template.
    async fn add_policy(
        &self,
        scope: &PolicyScope,
        template: &PolicyTemplate<'_>,
        name: Option<&str>,
        place: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure>;

    /// Removes a text.
    async fn remove_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        place: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure>;

    /// Earlier versions of a text, newest first.
    async fn policy_history(
        &self,
        scope: &PolicyScope,
        name: &str,
        place: Option<PolicyPlace>,
    ) -> Result<Vec<PolicyHistoryEntry>, Failure>;

    /// Makes an earlier version of a text the active one.
    async fn restore_policy(
        &self,
        scope: &PolicyScope,
        name: &str,
        version: i64,
        place: Option<PolicyPlace>,
    ) -> Result<ChangedPolicy, Failure>;

    /// Removes the policies that apply only to this agent, which was removed.
    async fn remove_agent_policies(&self, agent: &Agent) -> Result<(), Failure>;

    /// Removes all policies of an org.
    async fn remove_org_policies(&self, org: &OrgId) -> Result<(), Failure>;
}

/// Keys and test deliveries of webhooks.
#[async_trait]
pub trait WebhookHost: Send + Sync {
    /// Creates and keeps the key that a webhook's events are signed with. Returns its source and the key.
    fn create_webhook_key(&self, id: &str) -> Result<(credential::SecretSource, String), Failure>;

    /// Removes the key of a webhook, if it was created here.
    fn remove_webhook_key(&self, id: &str) -> Result<(), Failure>;

    /// Fails if an environment variable is set and holds no valid key. It may be set later.
    async fn check_webhook_key(&self, variable: &str) -> Result<(), Failure>;

    /// Sends a test event to a webhook now.
    async fn send_test_event(&self, webhook: &Webhook) -> Result<(), Failure>;
}

/// Secrets in the store, encrypted.
#[async_trait]
pub trait SecretHost: Send + Sync {
    /// All secrets, without their values.
    async fn list_secrets(&self) -> Result<Vec<SecretRow>, Failure>;

    /// Encrypts and saves a secret.
    async fn set_secret(&self, name: &str, secret: &credential::Secret) -> Result<(), Failure>;

    /// Removes a secret.
    async fn remove_secret(&self, name: &str) -> Result<(), Failure>;
}
