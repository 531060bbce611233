//! Large results: large parts are replaced by links, and small ones stay.
//!
//! The result is rendered as usual, from a copy of the task in which each large part is a file with a result URI; nothing is stored
//! twice, because the URI is read from the task's journal. A short text lists what was omitted, how it begins, and how to read it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{
    json::Json,
    message::{Artifact, Content, Message, Part},
    task::{Task, TaskState},
};
use rmcp::model::ContentBlock;

use crate::{
    result_chunks::{kind_of, size_of, weight_of},
    result_uri::ResultPath,
    tool_result::ToolResult,
};

/// Minimum size of a part that is replaced by a link, in bytes.
const MIN_LINKED_BYTES: usize = 1_024;

/// Maximum number of parts that are replaced one by one; beyond it, whole artifacts are.
const MAX_LINKED_PARTS: usize = 20;

/// Maximum length of the excerpt of an omitted part.
const EXCERPT_LENGTH: usize = 400;

/// Omitted part or artifact.
struct OmittedItem {
    place: ResultPath,
    uri: String,
    name: String,
    kind: String,
    size: usize,
    /// Excerpt, if it is text.
    begins: String,
}

/// Replaces the selected items by links.
struct LinkReplacer<'a> {
    task: &'a str,
    chosen: &'a [ResultPath],
    left_out: Vec<OmittedItem>,
}

/// Size of a task in a context, with or without its last message.
pub(super) fn weight(task: &Task, with_message: bool) -> usize {
    let made: usize = task.artifacts.iter().map(|artifact| weight_of_all(&artifact.parts)).sum();
    let message = task.message.as_ref().filter(|_| with_message);
    made + message.map_or(0, |message| weight_of_all(&message.parts))
}

/// Result of a task with everything large replaced by links.
pub(super) fn answer(
    task: &Task,
    limit: usize,
    with_message: bool,
    render: impl FnOnce(&Task) -> ToolResult,
) -> ToolResult {
    let (light, left_out) = lightened(task, &chosen(task, limit, with_message));
    let mut answer = render(&light);
    if left_out.is_empty() {
        return answer;
    }
    for block in &mut answer.content {
        let ContentBlock::ResourceLink(link) = block else { continue };
        if let Some(large) = left_out.iter().find(|large| large.uri == link.uri) {
            link.size = u64::try_from(large.size).ok();
        }
    }
    answer.content.push(ContentBlock::text(words(task, &left_out)));
    answer
}

/// Copy of a task with links at these paths.
fn lightened(task: &Task, chosen: &[ResultPath]) -> (Task, Vec<OmittedItem>) {
    let mut light = head_of(task);
    let mut scissors = LinkReplacer { task: task.head.id.as_str(), chosen, left_out: Vec::new() };
    for (at, artifact) in task.artifacts.iter().enumerate() {
        let parts = match ResultPath::Artifact(at) {
            place if chosen.contains(&place) => vec![scissors.artifact(artifact, place)],
            _ => {
                let name = artifact.name.as_deref().unwrap_or(&artifact.id);
                scissors.parts(&artifact.parts, |part| ResultPath::Part(at, part), name)
            }
        };
        light.artifacts.push(Artifact { parts, ..bare(artifact) });
    }
    light.message = task.message.as_ref().map(|message| Message {
        parts: scissors.parts(&message.parts, ResultPath::Said, "message"),
        ..without_parts(message)
    });
    (light, scissors.left_out)
}

/// Items to omit: the largest parts first, and whole artifacts if that is not enough.
fn chosen(task: &Task, limit: usize, with_message: bool) -> Vec<ResultPath> {
    let mut total = weight(task, with_message);
    let mut parts: Vec<(usize, ResultPath)> = Vec::new();
    for (at, artifact) in task.artifacts.iter().enumerate() {
        parts.extend(weights(&artifact.parts).map(|(part, weight)| (weight, ResultPath::Part(at, part))));
    }
    // Questions and status messages of an agent are for the model, whatever their length.
    if let (true, TaskState::Completed, Some(message)) = (with_message, task.head.state, &task.message) {
        parts.extend(weights(&message.parts).map(|(part, weight)| (weight, ResultPath::Said(part))));
    }
    parts.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut chosen = Vec::new();
    for (weight, place) in parts.into_iter().take(MAX_LINKED_PARTS) {
        if total <= limit || weight < MIN_LINKED_BYTES {
            break;
        }
        total -= weight;
        chosen.push(place);
    }
    let rest = |at: usize, artifact: &Artifact| -> usize {
        let stays =
            weights(&artifact.parts).filter(|(part, _)| !chosen.contains(&ResultPath::Part(at, *part)));
        stays.map(|(_, weight)| weight).sum()
    };
    let artifacts = task.artifacts.iter().enumerate();
    let mut wholes: Vec<_> = artifacts.map(|(at, artifact)| (rest(at, artifact), at)).collect();
    wholes.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    for (weight, at) in wholes {
        if total <= limit || weight < MIN_LINKED_BYTES {
            break;
        }
        total -= weight;
        chosen.retain(|place| !matches!(place, ResultPath::Part(artifact, _) if *artifact == at));
        chosen.push(ResultPath::Artifact(at));
    }
    chosen
}

// === impl LinkReplacer ===

impl LinkReplacer<'_> {
    /// Parts, the selected ones as links. `name` is used for parts without a name.
    fn parts(&mut self, parts: &[Part], place: impl Fn(usize) -> ResultPath, name: &str) -> Vec<Part> {
        let is_one = parts.len() == 1;
        let link = |(at, part): (usize, &Part)| {
            let place = place(at);
            if !self.chosen.contains(&place) {
                return part.clone();
            }
            let unnamed = || if is_one { name.to_owned() } else { format!("{name} part {}", at + 1) };
            let large =
                OmittedItem::part(part, place, part.filename.clone().unwrap_or_else(unnamed), self.task);
            let link = large.link(part);
            self.left_out.push(large);
            link
        };
        parts.iter().enumerate().map(link).collect()
    }

    /// Whole artifact as a link.
    fn artifact(&mut self, artifact: &Artifact, place: ResultPath) -> Part {
        let large = OmittedItem::artifact(artifact, place, self.task);
        let link = large.link(&Part::text(""));
        self.left_out.push(large);
        link
    }
}

// === impl OmittedItem ===

impl OmittedItem {
    fn part(part: &Part, place: ResultPath, name: String, task: &str) -> Self {
        let (kind, size) = (kind_of(part).to_owned(), size_of(part));
        Self { place, uri: place.in_task(task), name, begins: beginning(part, &kind), kind, size }
    }

    fn artifact(artifact: &Artifact, place: ResultPath, task: &str) -> Self {
        let is_text = artifact.parts.iter().all(|part| matches!(part.content, Content::Text(_)));
        let kind = if is_text { "text/plain" } else { "application/json" }.to_owned();
        let name = artifact.name.clone().unwrap_or_else(|| artifact.id.clone());
        let begins = artifact.parts.first().map(|part| beginning(part, kind_of(part))).unwrap_or_default();
        Self { place, uri: place.in_task(task), name, begins, kind, size: weight_of_all(&artifact.parts) }
    }

    /// Link that replaces a part.
    fn link(&self, part: &Part) -> Part {
        let mut extra = part.extra.clone();
        if extra.get("size").is_none() {
            extra.push("size", Json::encode(&self.size));
        }
        Part {
            content: Content::Url(self.uri.clone()),
            filename: Some(self.name.clone()),
            media_type: Some(self.kind.clone()),
            metadata: part.metadata.clone(),
            extra,
        }
    }
}

/// Text for the model about the omitted items.
fn words(task: &Task, left_out: &[OmittedItem]) -> String {
    let mut text = "Too large to be shown here, and to be read in pieces:\n".to_owned();
    for large in left_out.iter().take(MAX_LINKED_PARTS) {
        let OmittedItem { uri, name, kind, size, begins, .. } = large;
        text.push_str(&format!("\n- {name} ({kind}, {size} bytes): {uri}\n"));
        if !begins.is_empty() {
            text.push_str(&format!("  It begins: {begins}…\n"));
        }
    }
    if left_out.len() > MAX_LINKED_PARTS {
        text.push_str(&format!("\n- and {} more that are linked\n", left_out.len() - MAX_LINKED_PARTS));
    }
    let first = left_out.first().map(|large| large.place.to_string()).unwrap_or_default();
    let id = &task.head.id;
    text.push_str(&format!(
        "\nresources/read reads such an address; so does get_task with task_id \"{id}\" and part \"{first}\". \
         Each piece says how to get the next."
    ));
    text
}

/// Excerpt of a part; none for content that is not text.
fn beginning(part: &Part, kind: &str) -> String {
    let text = match &part.content {
        Content::Text(text) => text.as_str(),
        Content::Data(json) | Content::Unknown(json) => json.get(),
        Content::Raw(base64) if kind.starts_with("text/") => {
            let some = base64.get(..base64.len().min(EXCERPT_LENGTH * 4)).unwrap_or_default();
            let bytes = BASE64_STANDARD.decode(some).unwrap_or_default();
            return String::from_utf8_lossy(&bytes).chars().take(EXCERPT_LENGTH).collect();
        }
        Content::Raw(_) | Content::Url(_) => return String::new(),
    };
    text.chars().take(EXCERPT_LENGTH).collect()
}

fn weights(parts: &[Part]) -> impl Iterator<Item = (usize, usize)> {
    parts.iter().map(weight_of).enumerate()
}

fn weight_of_all(parts: &[Part]) -> usize {
    parts.iter().map(weight_of).sum()
}

/// Copy of a task without artifacts and messages.
fn head_of(task: &Task) -> Task {
    let mut head = Task::new(task.head.clone());
    (head.failure, head.is_reply) = (task.failure.clone(), task.is_reply);
    head
}

/// An artifact without its parts.
fn bare(artifact: &Artifact) -> Artifact {
    Artifact {
        id: artifact.id.clone(),
        name: artifact.name.clone(),
        description: artifact.description.clone(),
        parts: Vec::new(),
        metadata: artifact.metadata.clone(),
        extensions: artifact.extensions.clone(),
        extra: artifact.extra.clone(),
    }
}

/// A message without its parts.
fn without_parts(message: &Message) -> Message {
    let mut bare = Message::new(message.id.clone(), message.role, Vec::new());
    bare.context_id.clone_from(&message.context_id);
    bare.task_id.clone_from(&message.task_id);
    bare.metadata.clone_from(&message.metadata);
    bare.extensions.clone_from(&message.extensions);
    bare.reference_task_ids.clone_from(&message.reference_task_ids);
    bare.extra.clone_from(&message.extra);
    bare
}

#[cfg(test)]
mod tests;
