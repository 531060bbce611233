//! Labels of nodes in drawings.

use crate::{
    definition::{NodeAction, NodeId},
    template::JsonTemplate,
};

/// No label is longer, in characters.
pub(super) const MAX_LABEL_CHARS: usize = 36;
const MAX_TOOLTIP_CHARS: usize = 300;

/// Label of an action: one short line.
pub(super) fn action_label(action: &NodeAction) -> String {
    shorten(&action_text(action), MAX_LABEL_CHARS)
}

/// Tooltip of an action: the label with more characters.
pub(super) fn action_tooltip(action: &NodeAction) -> String {
    shorten(&action_text(action), MAX_TOOLTIP_CHARS)
}

fn action_text(action: &NodeAction) -> String {
    let word = action.word();
    let rest = match action {
        NodeAction::AgentRef { agent } => agent.summary(),
        NodeAction::Invoke { agent, skill, .. } => match skill {
            Some(skill) => format!("{}: {}", agent.summary(), skill.summary()),
            None => agent.summary(),
        },
        NodeAction::Dispatch { work_type, description, required_skills, .. } => {
            let told = work_type.as_ref().or(required_skills.first()).or(description.as_ref());
            told.map(JsonTemplate::summary).unwrap_or_default()
        }
        NodeAction::Tool { name, .. }
        | NodeAction::Pipeline { name, .. }
        | NodeAction::Workflow { name, .. } => name.clone(),
        NodeAction::Condition { test, .. } => test.text().to_owned(),
        NodeAction::Map { over, action, .. } => format!("{} over {}", action.word(), over.summary()),
        NodeAction::Approval { question, .. } => question.summary(),
        NodeAction::Set { value } => value.summary(),
    };
    format!("{word} {rest}")
}

/// Branch of `action` that a node is.
pub(super) fn branch_name(action: &NodeAction, id: &NodeId) -> Option<&'static str> {
    match action {
        NodeAction::Condition { then, .. } if then.contains(id) => Some("then"),
        NodeAction::Condition { otherwise, .. } if otherwise.contains(id) => Some("else"),
        _ => None,
    }
}

/// Shortens a text to one line with a maximum number of characters.
pub(super) fn shorten(text: &str, longest: usize) -> String {
    let line: String =
        text.split(|c: char| c.is_whitespace() || c.is_control()).collect::<Vec<_>>().join(" ");
    let line = line.trim();
    if line.chars().count() <= longest {
        return line.to_owned();
    }
    let kept: String = line.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
