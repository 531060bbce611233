//! What only the program can do: it knows where policies are kept, and how cards and credentials are read.

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{agent::Agent, card::Card, failure::Failure, ids::Scope, json::Json};
use rialto_policy::{Source, Template};

/// A text that a policy had.
#[derive(Clone, Debug)]
pub struct PolicyVersion {
    /// What it is called by.
    pub version: i64,
    /// When it was made or replaced.
    pub at: Timestamp,
    /// By whom, where that is known.
    pub by: Option<String>,
    /// What it said; nothing where it was taken away.
    pub text: Option<String>,
}

/// What the program does for the console.
#[async_trait]
pub trait Office: Send + Sync {
    /// The texts of all policies in force, by their names.
    async fn policies(&self) -> Result<Vec<Source>, Failure>;

    /// Keeps a text under a name, if all that is then in force holds up. Answers the name it is listed by.
    async fn save_policy(&self, by: &str, name: &str, text: &str) -> Result<String, Failure>;

    /// Keeps what a template says, under a name of its own.
    async fn add_policy(&self, by: &str, template: &Template<'_>) -> Result<String, Failure>;

    /// Takes a text away.
    async fn remove_policy(&self, by: &str, name: &str) -> Result<(), Failure>;

    /// The texts that a policy had, newest first.
    async fn policy_history(&self, name: &str) -> Result<Vec<PolicyVersion>, Failure>;

    /// Takes away the policies that are about nothing but an agent that is gone.
    async fn forget_policies(&self, agent: &Agent) -> Result<(), Failure>;

    /// Reads a card.
    fn read_card(&self, text: &str) -> Option<Card>;

    /// How an agent's secret is shown to it and where it comes from; never what it is.
    fn credential(&self, agent: &Agent) -> Option<String>;

    /// A token that nobody can guess.
    fn fresh_token(&self) -> Result<String, Failure>;

    /// What is deployed in a project: a list, as `/api/v1/tools` tells it.
    fn tools(&self, scope: &Scope) -> Json;
}
