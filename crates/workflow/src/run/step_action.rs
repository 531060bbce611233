//! Action of a step, with all templates rendered.

use rialto_model::{
    failure::{Failure, FailureKind},
    flow::FlowKind,
    json::Json,
    message::Part,
    routing::WorkDescription,
};

use super::execution_state::{ExecutionState, StepKey};
use crate::{
    definition::NodeAction,
    template::{JsonTemplate, RenderError},
};

/// A call that a step makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StepAction {
    /// Of a named agent.
    Invoke { agent: String, skill: Option<String>, parts: Vec<Part> },
    /// Call to the best agent.
    Dispatch { work: WorkDescription, parts: Vec<Part> },
    /// Of a tool.
    Tool { name: String, args: Json },
    /// Of another definition.
    Nested { kind: FlowKind, name: String, input: Json },
}

// === impl StepAction ===

impl StepAction {
    /// Renders `action` for a step. None for an action without a call.
    pub(super) fn for_step(
        action: &NodeAction,
        execution: &ExecutionState,
        key: StepKey,
    ) -> Result<Option<Self>, Failure> {
        let fill = |template: &JsonTemplate| render_template(template, execution, key);
        let maybe = |template: Option<&JsonTemplate>| template.map(fill).transpose();
        let input =
            |template: Option<&JsonTemplate>| template.map_or_else(|| Ok(execution.input.clone()), fill);
        Ok(Some(match action {
            NodeAction::Invoke { agent, skill, args, message } => Self::Invoke {
                agent: json_as_text(&fill(agent)?),
                skill: maybe(skill.as_ref())?.map(|skill| json_as_text(&skill)),
                parts: message_parts(maybe(message.as_ref())?, maybe(args.as_ref())?),
            },
            NodeAction::Dispatch { work_type, description, required_skills, args, message } => {
                let description =
                    maybe(description.as_ref())?.map_or_else(String::new, |words| json_as_text(&words));
                let required: Result<Vec<Json>, Failure> = required_skills.iter().map(fill).collect();
                let said = maybe(message.as_ref())?.or_else(|| Some(Json::encode(&description)));
                let args = maybe(args.as_ref())?;
                let message = if args.is_some() { maybe(message.as_ref())? } else { said };
                let work = WorkDescription {
                    work_type: maybe(work_type.as_ref())?
                        .map_or_else(String::new, |word| json_as_text(&word)),
                    description,
                    required_skills: required?.iter().map(json_as_text).collect(),
                    ..WorkDescription::default()
                };
                Self::Dispatch { work, parts: message_parts(message, args) }
            }
            NodeAction::Tool { name, args } => {
                let args = args.as_ref().map_or_else(|| Ok(Json::empty_object()), fill)?;
                Self::Tool { name: name.clone(), args }
            }
            NodeAction::Pipeline { name, input: given } => {
                Self::Nested { kind: FlowKind::Pipeline, name: name.clone(), input: input(given.as_ref())? }
            }
            NodeAction::Workflow { name, input: given } => {
                Self::Nested { kind: FlowKind::Workflow, name: name.clone(), input: input(given.as_ref())? }
            }
            NodeAction::AgentRef { .. }
            | NodeAction::Condition { .. }
            | NodeAction::Map { .. }
            | NodeAction::Approval { .. }
            | NodeAction::Set { .. } => return Ok(None),
        }))
    }

    /// Name of the callee, for people.
    pub(super) fn callee_name(&self) -> String {
        match self {
            Self::Invoke { agent, skill: Some(skill), .. } => format!("{agent}.{skill}"),
            Self::Invoke { agent, skill: None, .. } => agent.clone(),
            Self::Dispatch { work, .. } if work.work_type.is_empty() => "dispatch".to_owned(),
            Self::Dispatch { work, .. } => format!("dispatch of {}", work.work_type),
            Self::Tool { name, .. } => name.clone(),
            Self::Nested { kind, name, .. } => kind.skill_id(name),
        }
    }

    /// Input, for the record.
    pub(super) fn recorded_input(&self) -> Json {
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
pub(super) fn render_template(
    template: &JsonTemplate,
    execution: &ExecutionState,
    key: StepKey,
) -> Result<Json, Failure> {
    let found = template.render(&|root| execution.resolve_root(root, key));
    found.map_err(|error: RenderError| Failure::new(FailureKind::Invalid, error.to_string()))
}

/// A string as it is, everything else as JSON.
pub(super) fn json_as_text(json: &Json) -> String {
    json.read::<String>().unwrap_or_else(|_| json.get().to_owned())
}

fn message_parts(message: Option<Json>, args: Option<Json>) -> Vec<Part> {
    let message = message.map(|message| Part::text(json_as_text(&message)));
    let args = args.map(Part::data);
    let parts: Vec<Part> = message.into_iter().chain(args).collect();
    if parts.is_empty() { vec![Part::data(Json::empty_object())] } else { parts }
}
