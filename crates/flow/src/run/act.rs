//! What a step does, with everything filled in.

use rialto_model::{
    failure::{Failure, FailureKind},
    flow::FlowKind,
    json::Json,
    message::Part,
    routing::WorkDescription,
};

use super::board::{Board, Key};
use crate::{
    definition::Does,
    template::{RenderError, Template},
};

/// A call that a step makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Of a named agent.
    Invoke { agent: String, skill: Option<String>, parts: Vec<Part> },
    /// Of whoever fits best.
    Dispatch { work: WorkDescription, parts: Vec<Part> },
    /// Of a tool.
    Tool { name: String, args: Json },
    /// Of another definition.
    Nested { kind: FlowKind, name: String, input: Json },
}

// === impl Act ===

impl Act {
    /// What `does` comes to for a step. None where nobody is called.
    pub(super) fn of(does: &Does, board: &Board, key: Key) -> Result<Option<Self>, Failure> {
        let fill = |template: &Template| render(template, board, key);
        let maybe = |template: Option<&Template>| template.map(fill).transpose();
        let input = |template: Option<&Template>| template.map_or_else(|| Ok(board.input.clone()), fill);
        Ok(Some(match does {
            Does::Invoke { agent, skill, args, message } => Self::Invoke {
                agent: text(&fill(agent)?),
                skill: maybe(skill.as_ref())?.map(|skill| text(&skill)),
                parts: parts(maybe(message.as_ref())?, maybe(args.as_ref())?),
            },
            Does::Dispatch { work_type, description, required_skills, args, message } => {
                let description = maybe(description.as_ref())?.map_or_else(String::new, |words| text(&words));
                let required: Result<Vec<Json>, Failure> = required_skills.iter().map(fill).collect();
                let said = maybe(message.as_ref())?.or_else(|| Some(Json::encode(&description)));
                let args = maybe(args.as_ref())?;
                let message = if args.is_some() { maybe(message.as_ref())? } else { said };
                let work = WorkDescription {
                    work_type: maybe(work_type.as_ref())?.map_or_else(String::new, |word| text(&word)),
                    description,
                    required_skills: required?.iter().map(text).collect(),
                    ..WorkDescription::default()
                };
                Self::Dispatch { work, parts: parts(message, args) }
            }
            Does::Tool { name, args } => {
                let args = args.as_ref().map_or_else(|| Ok(Json::empty_object()), fill)?;
                Self::Tool { name: name.clone(), args }
            }
            Does::Pipeline { name, input: given } => {
                Self::Nested { kind: FlowKind::Pipeline, name: name.clone(), input: input(given.as_ref())? }
            }
            Does::Workflow { name, input: given } => {
                Self::Nested { kind: FlowKind::Workflow, name: name.clone(), input: input(given.as_ref())? }
            }
            Does::AgentRef { .. }
            | Does::Condition { .. }
            | Does::Map { .. }
            | Does::Approval { .. }
            | Does::Set { .. } => return Ok(None),
        }))
    }

    /// What is called, in one word for people.
    pub(super) fn called(&self) -> String {
        match self {
            Self::Invoke { agent, skill: Some(skill), .. } => format!("{agent}.{skill}"),
            Self::Invoke { agent, skill: None, .. } => agent.clone(),
            Self::Dispatch { work, .. } if work.work_type.is_empty() => "dispatch".to_owned(),
            Self::Dispatch { work, .. } => format!("dispatch of {}", work.work_type),
            Self::Tool { name, .. } => name.clone(),
            Self::Nested { kind, name, .. } => kind.skill_id(name),
        }
    }

    /// What is said, for the record.
    pub(super) fn input(&self) -> Json {
        match self {
            Self::Invoke { parts, .. } | Self::Dispatch { parts, .. } => {
                rialto_model::call::args_of(parts, None)
            }
            Self::Tool { args, .. } => args.clone(),
            Self::Nested { input, .. } => input.clone(),
        }
    }
}

/// Fills a template in for a step.
pub(super) fn render(template: &Template, board: &Board, key: Key) -> Result<Json, Failure> {
    let found = template.render(&|root| board.find(root, key));
    found.map_err(|error: RenderError| Failure::new(FailureKind::Invalid, error.to_string()))
}

/// A string as it is, everything else as JSON.
pub(super) fn text(json: &Json) -> String {
    json.read::<String>().unwrap_or_else(|_| json.get().to_owned())
}

fn parts(message: Option<Json>, args: Option<Json>) -> Vec<Part> {
    let message = message.map(|message| Part::text(text(&message)));
    let args = args.map(Part::data);
    let parts: Vec<Part> = message.into_iter().chain(args).collect();
    if parts.is_empty() { vec![Part::data(Json::empty_object())] } else { parts }
}
