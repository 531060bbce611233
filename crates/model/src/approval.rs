//! Something that waits until somebody has said that it may be done.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    call::CallerId,
    ids::{AgentId, ApprovalId, OrgId, ProcessId, Scope, TaskId, TokenId},
    json::Json,
};

/// What goes on when it is approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ApprovalTarget")]
pub enum ApprovalTarget {
    /// A call that has not left yet. It leaves, or its task fails.
    Call,
    /// Work that is under way. Whoever does it is told, and goes on either way.
    Work,
}

/// A question whether something may be done, and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Its name.
    pub id: ApprovalId,
    /// Where it belongs.
    pub scope: Scope,
    /// The task that waits.
    pub task: TaskId,
    /// Whose task that is.
    pub caller: CallerId,
    /// The token that one came with: what waits is denied when it is revoked.
    #[serde(default, rename = "tokenId", skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// Who does its work.
    pub agent: AgentId,
    /// What is to be done: a skill, or a tool that an agent wants to use.
    pub tool: String,
    /// With which arguments, secrets redacted.
    pub args: Json,
    /// Who is to decide, as the policies say it. Where nobody is named, the caller itself may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// What asks for it: policies, or whatever else does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// What goes on.
    pub waits: ApprovalTarget,
    /// The process that has the work under way, if it is that and the process has said that it is there.
    #[serde(default)]
    pub runner: ProcessId,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// From when on it is denied.
    pub expires_at: Timestamp,
    /// The answer, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<ApprovalVerdict>,
    /// Whether the answer has had its effect.
    #[serde(default)]
    pub is_settled: bool,
}

/// What was decided, by whom, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ApprovalDecision")]
pub struct ApprovalVerdict {
    /// Whether it may be done.
    pub approved: bool,
    /// Who says so.
    pub by: String,
    /// Why, if anything was said about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// Filter for a list of approvals, newest first.
#[derive(Clone, Debug, Default)]
pub struct ApprovalFilter {
    /// Only this one.
    pub id: Option<ApprovalId>,
    /// Only those of this org.
    pub org: Option<OrgId>,
    /// Only those of this task.
    pub task: Option<TaskId>,
    /// Only those that have no answer yet.
    pub undecided: bool,
    /// Only those whose answer, if they have one, has had no effect yet.
    pub unsettled: bool,
    /// Only those older than this one: the last id of the page before.
    pub before: Option<ApprovalId>,
    /// Maximum number of rows.
    pub limit: usize,
}

// === impl Approval ===

impl Approval {
    /// Returns whether its own caller may decide: nobody is named, or everybody who is named is the caller.
    pub fn is_for_caller(&self) -> bool {
        is_for(&self.by, &self.caller)
    }

    /// State in one word.
    pub fn state(&self) -> &'static str {
        match &self.decided {
            None if self.is_settled => "withdrawn",
            None => "waiting",
            Some(decided) if decided.approved => "approved",
            Some(_) => "denied",
        }
    }
}

/// Returns whether a caller may decide about its own call when these are named: nobody, `caller`, or the caller by its name.
pub fn is_for(by: &[String], caller: &CallerId) -> bool {
    let is_caller = |who: &String| {
        let who = who.trim();
        who.is_empty() || who.eq_ignore_ascii_case("caller") || who == caller.as_str()
    };
    by.iter().all(is_caller)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_decides_where_nobody_else_is_named() {
        let may = |by: &[&str]| {
            is_for(&by.iter().map(|who| (*who).to_owned()).collect::<Vec<_>>(), &CallerId::from("ann"))
        };
        assert!(may(&[]) && may(&["ann"]) && may(&["Caller"]) && may(&["ann", "caller"]));
        assert!(!may(&["the ops team"]) && !may(&["ann", "bob"]) && !may(&["Ann"]));
    }
}
