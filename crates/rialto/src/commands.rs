//! Commands, one module each.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod costs;
pub(crate) mod doctor;
pub(crate) mod guard;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod keys;
pub(crate) mod mcp;
pub(crate) mod nodes;
pub(crate) mod orgs;
pub(crate) mod policy;
pub(crate) mod routing;
pub(crate) mod secrets;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod stored_workflows;
pub(crate) mod tasks;
pub(crate) mod tokens;
pub(crate) mod tools;
pub(crate) mod webhooks;
pub(crate) mod workflow;
