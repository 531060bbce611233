//! Results that would flood a context: what is large in them becomes links, and everything small stays.
//!
//! The result is made as ever, of a copy of the task in which each large part is a file at an address of ours; nothing is kept
//! twice, because the address is read from the task's journal. A few words say what was left out, how it begins, and how it is read.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rialto_model::{
    json::Json,
    message::{Artifact, Content, Message, Part},
    task::{Task, TaskState},
};
use rmcp::model::ContentBlock;

use crate::{
    answer::Answer,
    pieces::{kind_of, size_of, weight_of},
    place::Place,
};

/// Nothing smaller than this is worth a link.
const SMALLEST: usize = 1_024;

/// So many parts are left out one by one, and told of in words; of more, whole artifacts are.
const MOST: usize = 20;

/// So much is told of the beginning of what is left out.
const EXCERPT: usize = 400;

/// Something that was left out.
struct Large {
    place: Place,
    uri: String,
    name: String,
    kind: String,
    size: usize,
    /// How it begins, if that can be read.
    begins: String,
}

/// Cuts out what was chosen.
struct Scissors<'a> {
    task: &'a str,
    chosen: &'a [Place],
    left_out: Vec<Large>,
}

/// How much of a context a task takes, with its last message or without.
pub(super) fn weight(task: &Task, with_message: bool) -> usize {
    let made: usize = task.artifacts.iter().map(|artifact| weight_of_all(&artifact.parts)).sum();
    let message = task.message.as_ref().filter(|_| with_message);
    made + message.map_or(0, |message| weight_of_all(&message.parts))
}

/// The answer that `render` makes of a task once everything large is left out of it.
pub(super) fn answer(
    task: &Task,
    limit: usize,
    with_message: bool,
    render: impl FnOnce(&Task) -> Answer,
) -> Answer {
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

/// A copy of a task with links at these places.
fn lightened(task: &Task, chosen: &[Place]) -> (Task, Vec<Large>) {
    let mut light = head_of(task);
    let mut scissors = Scissors { task: task.head.id.as_str(), chosen, left_out: Vec::new() };
    for (at, artifact) in task.artifacts.iter().enumerate() {
        let parts = match Place::Artifact(at) {
            place if chosen.contains(&place) => vec![scissors.artifact(artifact, place)],
            _ => {
                let name = artifact.name.as_deref().unwrap_or(&artifact.id);
                scissors.parts(&artifact.parts, |part| Place::Part(at, part), name)
            }
        };
        light.artifacts.push(Artifact { parts, ..bare(artifact) });
    }
    light.message = task.message.as_ref().map(|message| Message {
        parts: scissors.parts(&message.parts, Place::Said, "message"),
        ..without_parts(message)
    });
    (light, scissors.left_out)
}

/// What is left out: the largest parts first, and whole artifacts if that is not enough.
fn chosen(task: &Task, limit: usize, with_message: bool) -> Vec<Place> {
    let mut total = weight(task, with_message);
    let mut parts: Vec<(usize, Place)> = Vec::new();
    for (at, artifact) in task.artifacts.iter().enumerate() {
        parts.extend(weights(&artifact.parts).map(|(part, weight)| (weight, Place::Part(at, part))));
    }
    // What an agent asks or says on the way is words for the model, whatever their length.
    if let (true, TaskState::Completed, Some(message)) = (with_message, task.head.state, &task.message) {
        parts.extend(weights(&message.parts).map(|(part, weight)| (weight, Place::Said(part))));
    }
    parts.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut chosen = Vec::new();
    for (weight, place) in parts.into_iter().take(MOST) {
        if total <= limit || weight < SMALLEST {
            break;
        }
        total -= weight;
        chosen.push(place);
    }
    let rest = |at: usize, artifact: &Artifact| -> usize {
        let stays = weights(&artifact.parts).filter(|(part, _)| !chosen.contains(&Place::Part(at, *part)));
        stays.map(|(_, weight)| weight).sum()
    };
    let artifacts = task.artifacts.iter().enumerate();
    let mut wholes: Vec<_> = artifacts.map(|(at, artifact)| (rest(at, artifact), at)).collect();
    wholes.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    for (weight, at) in wholes {
        if total <= limit || weight < SMALLEST {
            break;
        }
        total -= weight;
        chosen.retain(|place| !matches!(place, Place::Part(artifact, _) if *artifact == at));
        chosen.push(Place::Artifact(at));
    }
    chosen
}

// === impl Scissors ===

impl Scissors<'_> {
    /// Parts, the chosen ones as links. `name` is what they are called who have no name of their own.
    fn parts(&mut self, parts: &[Part], place: impl Fn(usize) -> Place, name: &str) -> Vec<Part> {
        let is_one = parts.len() == 1;
        let link = |(at, part): (usize, &Part)| {
            let place = place(at);
            if !self.chosen.contains(&place) {
                return part.clone();
            }
            let unnamed = || if is_one { name.to_owned() } else { format!("{name} part {}", at + 1) };
            let large = Large::part(part, place, part.filename.clone().unwrap_or_else(unnamed), self.task);
            let link = large.link(part);
            self.left_out.push(large);
            link
        };
        parts.iter().enumerate().map(link).collect()
    }

    /// A whole artifact as a link.
    fn artifact(&mut self, artifact: &Artifact, place: Place) -> Part {
        let large = Large::artifact(artifact, place, self.task);
        let link = large.link(&Part::text(""));
        self.left_out.push(large);
        link
    }
}

// === impl Large ===

impl Large {
    fn part(part: &Part, place: Place, name: String, task: &str) -> Self {
        let (kind, size) = (kind_of(part).to_owned(), size_of(part));
        Self { place, uri: place.in_task(task), name, begins: beginning(part, &kind), kind, size }
    }

    fn artifact(artifact: &Artifact, place: Place, task: &str) -> Self {
        let is_text = artifact.parts.iter().all(|part| matches!(part.content, Content::Text(_)));
        let kind = if is_text { "text/plain" } else { "application/json" }.to_owned();
        let name = artifact.name.clone().unwrap_or_else(|| artifact.id.clone());
        let begins = artifact.parts.first().map(|part| beginning(part, kind_of(part))).unwrap_or_default();
        Self { place, uri: place.in_task(task), name, begins, kind, size: weight_of_all(&artifact.parts) }
    }

    /// What stands in place of a part.
    fn link(&self, part: &Part) -> Part {
        let mut extra = part.extra.clone();
        if extra.get("size").is_none() {
            extra.push("size", Json::of(&self.size));
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

/// What the model reads about what was left out.
fn words(task: &Task, left_out: &[Large]) -> String {
    let mut text = "Too large to be shown here, and to be read in pieces:\n".to_owned();
    for large in left_out.iter().take(MOST) {
        let Large { uri, name, kind, size, begins, .. } = large;
        text.push_str(&format!("\n- {name} ({kind}, {size} bytes): {uri}\n"));
        if !begins.is_empty() {
            text.push_str(&format!("  It begins: {begins}…\n"));
        }
    }
    if left_out.len() > MOST {
        text.push_str(&format!("\n- and {} more that are linked\n", left_out.len() - MOST));
    }
    let first = left_out.first().map(|large| large.place.to_string()).unwrap_or_default();
    let id = &task.head.id;
    text.push_str(&format!(
        "\nresources/read reads such an address; so does get_task with task_id \"{id}\" and part \"{first}\". \
         Each piece says how to get the next."
    ));
    text
}

/// The first words of a part; none of what is not read but looked at.
fn beginning(part: &Part, kind: &str) -> String {
    let text = match &part.content {
        Content::Text(text) => text.as_str(),
        Content::Data(json) | Content::Unknown(json) => json.get(),
        Content::Raw(base64) if kind.starts_with("text/") => {
            let some = base64.get(..base64.len().min(EXCERPT * 4)).unwrap_or_default();
            let bytes = BASE64_STANDARD.decode(some).unwrap_or_default();
            return String::from_utf8_lossy(&bytes).chars().take(EXCERPT).collect();
        }
        Content::Raw(_) | Content::Url(_) => return String::new(),
    };
    text.chars().take(EXCERPT).collect()
}

fn weights(parts: &[Part]) -> impl Iterator<Item = (usize, usize)> {
    parts.iter().map(weight_of).enumerate()
}

fn weight_of_all(parts: &[Part]) -> usize {
    parts.iter().map(weight_of).sum()
}

/// A task without what it made and said.
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
