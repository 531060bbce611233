//! Approval nodes: their questions are ordinary approval requests, so they are listed and decided with those of calls.

use rialto_engine::approvals::ApprovalRequest;
use rialto_model::{
    event::Event,
    flow::{FlowStep, StepQuestion},
    json::{Extra, Json},
    message::{Content, Part},
};

use super::RunDriver;
use crate::{
    definition::NodeAction,
    run::{answer::approval_id, execution_state::StepKey},
};

impl RunDriver {
    /// Creates the approval requests of waiting steps, each once. Returns all waiting steps.
    pub(super) async fn request_approvals(&mut self, held: Vec<FlowStep>) -> Vec<FlowStep> {
        let mut asked = Vec::with_capacity(held.len());
        for step in held {
            let place = self.execution.workflow.nodes.iter().position(|node| node.id.as_str() == step.node);
            let is_asked = step.question.as_ref().is_some_and(|question| approval_id(question).is_some());
            match place.filter(|_| step.task.is_none() && !is_asked) {
                Some(node) => {
                    asked.push(self.request_approval(StepKey { node, item: step.item }, step).await);
                }
                None => asked.push(step),
            }
        }
        asked
    }

    async fn request_approval(&mut self, key: StepKey, step: FlowStep) -> FlowStep {
        let Some(NodeAction::Approval { expires, .. }) = self.action_of(key) else { return step };
        let (patience, engine) = (*expires, self.context.engine.clone());
        let words = step.question.as_ref().and_then(|question| question.message.as_ref());
        let words = words.map(rialto_model::message::Message::text).unwrap_or_default();
        let Some(row) = engine.registry().deployments().find_flows(&self.run.scope) else { return step };
        let details = step.input.clone().map(|details| ("details".to_owned(), details));
        let first = words.lines().next().unwrap_or_default();
        let args: Extra = [("question".to_owned(), Json::encode(first))].into_iter().chain(details).collect();
        let wish = ApprovalRequest {
            scope: self.run.scope.clone(),
            task: self.run.id.clone(),
            caller: self.context.caller.clone(),
            agent: row.id.clone(),
            tool: format!("{} of {}", step.node, self.run.name),
            args: Json::encode(&args),
            by: Vec::new(),
            policies: Vec::new(),
            patience,
        };
        match engine.approvals().request(wish).await {
            Ok(Event::Asked { ask, message: Some(mut message), .. }) => {
                // The text of the definition is more specific.
                if let Some(Part { content: Content::Text(text), .. }) = message.parts.first_mut() {
                    *text = words;
                }
                let question = StepQuestion { ask, message: Some(message), expires: None };
                let step = FlowStep { question: Some(question), ..step };
                self.set_step(key, step.clone());
                step
            }
            Ok(_) => step,
            Err(failure) => {
                let run = &self.run.id;
                tracing::warn!(task.id = %run, "the question of run {run} is asked in its task only: {failure}");
                step
            }
        }
    }
}
