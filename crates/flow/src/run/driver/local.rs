//! Steps that call nobody, and those that run other definitions.

use rialto_engine::redact;
use rialto_model::{
    agent::Agent,
    call::CallTarget,
    failure::{Failure, FailureKind},
    flow::FlowStep,
    json::Json,
};
use serde_json::json;

use super::Driver;
use crate::{
    definition::Does,
    run::{act, board::Key},
};

/// So many items are done for at most.
const MOST_ITEMS: usize = 10_000;

impl Driver {
    /// Does what needs nobody. It is over at once, or waits.
    pub(super) fn begin_local(&mut self, key: Key, step: FlowStep, does: &Does) {
        let made = match does {
            Does::Set { value } => act::render(value, &self.board, key),
            Does::Condition { test, .. } => {
                let holds = test.holds(&|root| self.board.find(root, key));
                Ok(Json::encode(&json!({ "result": holds })))
            }
            Does::AgentRef { agent } => {
                act::render(agent, &self.board, key).and_then(|agent| self.agent(&act::text(&agent)))
            }
            Does::Map { over, .. } => match self.begin_map(key, &step, over) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            Does::Approval { .. } => match self.ask(key, step.clone(), does) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            Does::Invoke { .. }
            | Does::Dispatch { .. }
            | Does::Tool { .. }
            | Does::Pipeline { .. }
            | Does::Workflow { .. } => {
                Err(Failure::new(FailureKind::Internal, "somebody has to be called for this"))
            }
        };
        match made {
            Ok(output) => self.complete(key, step, output),
            Err(failure) => self.fail(key, step, failure),
        }
    }

    fn begin_map(
        &mut self,
        key: Key,
        step: &FlowStep,
        over: &crate::template::Template,
    ) -> Result<(), Failure> {
        let list = act::render(over, &self.board, key)?;
        if key.item.is_some() {
            return Err(Failure::new(
                FailureKind::Unsupported,
                "a map does not stand inside another; nest a workflow",
            ));
        }
        if !self.board.set_items(key.node, &list) {
            let message =
                "`over` is not a list; a reference to one keeps its type when nothing stands beside it";
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        let items = self.board.open_items(key.node).len();
        if items > MOST_ITEMS {
            let message = format!("`over` has {items} items; at most {MOST_ITEMS} are done at once");
            return Err(Failure::new(FailureKind::Invalid, message));
        }
        if items == 0 {
            self.complete(key, FlowStep { input: Some(list), ..step.clone() }, Json::encode(&[(); 0]));
        } else {
            self.put(key, FlowStep { input: Some(redact(&list)), ..step.clone() });
        }
        Ok(())
    }

    /// What is known of an agent.
    fn agent(&self, name: &str) -> Result<Json, Failure> {
        let (engine, caller) = (&self.crew.engine, &self.crew.caller);
        let found = engine.registry().find(&caller.scope, name).ok();
        let target = found.map(|agent| CallTarget { agent, skill: None });
        let target = target.filter(|target| engine.may_discover(caller, target)).ok_or_else(|| {
            let message = format!("no agent is known as \"{name}\"; `rialto agents list` shows them");
            Failure::new(FailureKind::NotFound, message)
        })?;
        Ok(described(&target.agent))
    }
}

fn described(agent: &Agent) -> Json {
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
