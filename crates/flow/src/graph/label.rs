//! What a picture says about a node.

use crate::{
    definition::{Does, NodeId},
    template::Template,
};

/// No label is longer, in characters.
pub(super) const LONGEST: usize = 36;
const LONGEST_TOLD: usize = 300;

/// What a node does, in one short line.
pub(super) fn what(does: &Does) -> String {
    shortened(&all(does), LONGEST)
}

/// The same with more room.
pub(super) fn told(does: &Does) -> String {
    shortened(&all(does), LONGEST_TOLD)
}

fn all(does: &Does) -> String {
    let word = does.word();
    let rest = match does {
        Does::AgentRef { agent } => agent.summary(),
        Does::Invoke { agent, skill, .. } => match skill {
            Some(skill) => format!("{}: {}", agent.summary(), skill.summary()),
            None => agent.summary(),
        },
        Does::Dispatch { work_type, description, required_skills, .. } => {
            let told = work_type.as_ref().or(required_skills.first()).or(description.as_ref());
            told.map(Template::summary).unwrap_or_default()
        }
        Does::Tool { name, .. } | Does::Pipeline { name, .. } | Does::Workflow { name, .. } => name.clone(),
        Does::Condition { test, .. } => test.text().to_owned(),
        Does::Map { over, does, .. } => format!("{} over {}", does.word(), over.summary()),
        Does::Approval { question, .. } => question.summary(),
        Does::Set { value } => value.summary(),
    };
    format!("{word} {rest}")
}

/// Which branch of `does` a node is.
pub(super) fn branch(does: &Does, id: &NodeId) -> Option<&'static str> {
    match does {
        Does::Condition { then, .. } if then.contains(id) => Some("then"),
        Does::Condition { otherwise, .. } if otherwise.contains(id) => Some("else"),
        _ => None,
    }
}

/// One line of at most so many characters.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    let line: String =
        text.split(|c: char| c.is_whitespace() || c.is_control()).collect::<Vec<_>>().join(" ");
    let line = line.trim();
    if line.chars().count() <= longest {
        return line.to_owned();
    }
    let kept: String = line.chars().take(longest.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
