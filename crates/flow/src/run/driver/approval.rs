//! Nodes that wait until a person agrees: the same questions that calls wait with which need approval, so they are listed and
//! decided with those.

use rialto_engine::approvals::Wish;
use rialto_model::{
    event::Event,
    flow::{FlowStep, StepQuestion},
    json::{Extra, Json},
    message::{Content, Part},
};

use super::Driver;
use crate::{
    definition::Does,
    run::{answer::approval_of, board::Key},
};

impl Driver {
    /// Puts the questions of nodes that wait for a person where people look for them; each once. Answers all that is held.
    pub(super) async fn ask_people(&mut self, held: Vec<FlowStep>) -> Vec<FlowStep> {
        let mut asked = Vec::with_capacity(held.len());
        for step in held {
            let place = self.board.workflow.nodes.iter().position(|node| node.id.as_str() == step.node);
            let is_asked = step.question.as_ref().is_some_and(|question| approval_of(question).is_some());
            match place.filter(|_| step.task.is_none() && !is_asked) {
                Some(node) => asked.push(self.ask_person(Key { node, item: step.item }, step).await),
                None => asked.push(step),
            }
        }
        asked
    }

    async fn ask_person(&mut self, key: Key, step: FlowStep) -> FlowStep {
        let Some(Does::Approval { expires, .. }) = self.does(key) else { return step };
        let (patience, engine) = (*expires, self.crew.engine.clone());
        let words = step.question.as_ref().and_then(|question| question.message.as_ref());
        let words = words.map(rialto_model::message::Message::text).unwrap_or_default();
        let Some(row) = engine.registry().find_flows(&self.run.scope) else { return step };
        let details = step.input.clone().map(|details| ("details".to_owned(), details));
        let first = words.lines().next().unwrap_or_default();
        let args: Extra = [("question".to_owned(), Json::encode(first))].into_iter().chain(details).collect();
        let wish = Wish {
            scope: self.run.scope.clone(),
            task: self.run.id.clone(),
            caller: self.crew.caller.clone(),
            agent: row.id.clone(),
            tool: format!("{} of {}", step.node, self.run.name),
            args: Json::encode(&args),
            by: Vec::new(),
            policies: Vec::new(),
            patience,
        };
        match engine.hold_for_approval(wish).await {
            Ok(Event::Asked { ask, message: Some(mut message), .. }) => {
                // The words of the definition say better what this is about.
                if let Some(Part { content: Content::Text(text), .. }) = message.parts.first_mut() {
                    *text = words;
                }
                let question = StepQuestion { ask, message: Some(message), expires: None };
                let step = FlowStep { question: Some(question), ..step };
                self.put(key, step.clone());
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
