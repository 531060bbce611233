//! Steps without a call, and `map` steps.

use rialto_engine::redact;
use rialto_model::{
    agent::Agent,
    call::CallTarget,
    failure::{Failure, FailureKind},
    flow::FlowStep,
    json::Json,
};
use serde_json::json;

use super::RunDriver;
use crate::{
    definition::NodeAction,
    run::{execution_state::StepKey, step_action},
};

/// Maximum number of items of a `map`.
const MAX_MAP_ITEMS: usize = 10_000;

impl RunDriver {
    /// Executes a step that needs no call. It finishes at once, or waits.
    pub(super) fn begin_local(&mut self, key: StepKey, step: FlowStep, action: &NodeAction) {
        let made = match action {
            NodeAction::Set { value } => step_action::render_template(value, &self.execution, key),
            NodeAction::Condition { test, .. } => {
                let holds = test.is_true(&|root| self.execution.resolve_root(root, key));
                Ok(Json::encode(&json!({ "result": holds })))
            }
            NodeAction::AgentRef { agent } => step_action::render_template(agent, &self.execution, key)
                .and_then(|agent| self.agent_description(&step_action::json_as_text(&agent))),
            NodeAction::Map { over, .. } => match self.begin_map(key, &step, over) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            NodeAction::Approval { .. } => match self.ask_caller(key, step.clone(), action) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            NodeAction::Invoke { .. }
            | NodeAction::Dispatch { .. }
            | NodeAction::Tool { .. }
            | NodeAction::Pipeline { .. }
            | NodeAction::Workflow { .. } => {
                Err(Failure::new(FailureKind::Internal, "this action needs a call"))
            }
        };
        match made {
            Ok(output) => self.complete_step(key, step, output),
            Err(failure) => self.fail_step(key, step, failure),
        }
    }

    fn begin_map(
        &mut self,
        key: StepKey,
        step: &FlowStep,
        over: &crate::template::JsonTemplate,
    ) -> Result<(), Failure> {
        let list = step_action::render_template(over, &self.execution, key)?;
        if key.item.is_some() {
            return Err(Failure::new(
                FailureKind::Unsupported,
                "a map cannot be inside another; use a nested workflow",
            ));
        }
        if !self.execution.set_items(key.node, &list) {
            let message =
                "`over` is not a list; a reference to one keeps its type when it is the whole value";
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        let items = self.execution.unstarted_items(key.node).len();
        if items > MAX_MAP_ITEMS {
            let message = format!("`over` has {items} items; at most {MAX_MAP_ITEMS} are done at once");
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        if items == 0 {
            self.complete_step(key, FlowStep { input: Some(list), ..step.clone() }, Json::encode(&[(); 0]));
        } else {
            self.set_step(key, FlowStep { input: Some(redact(&list)), ..step.clone() });
        }
        Ok(())
    }

    /// Row of an agent, as output.
    fn agent_description(&self, name: &str) -> Result<Json, Failure> {
        let (engine, caller) = (&self.context.engine, &self.context.caller);
        let found = engine.registry().find(&caller.scope, name).ok();
        let target = found.map(|agent| CallTarget { agent, skill: None });
        let target =
            target.filter(|target| engine.policies().may_discover(caller, target)).ok_or_else(|| {
                let message = format!("no agent is known as \"{name}\"; `rialto agents list` shows them");
                Failure::new(FailureKind::NotFound, message)
            })?;
        Ok(describe_agent(&target.agent))
    }
}

fn describe_agent(agent: &Agent) -> Json {
    let skills: Vec<&str> = agent.card.skills.iter().map(|skill| skill.id.as_str()).collect();
    Json::encode(&json!({
        "agentCardId": agent.id,
        "id": agent.id,
        "name": agent.card.name,
        "slug": agent.slug,
        "url": agent.url,
        "description": agent.card.description,
        "health": agent.health,
        "skills": skills,
    }))
}
