//! References in place of files in structured content.
//!
//! The bytes of a file are in a content block already. Repeated in `structuredContent` they would double the result, and a client that
//! shows its model structured content would show base64. So the part there refers to the block, and to the URI of the file.

use std::borrow::Cow;

use rialto_model::{
    json::{Extra, Json},
    message::{Content, Part},
    task::Task,
};

use crate::result_uri::ResultPath;

/// Member of a part's metadata that names the content block with the file.
const CONTENT_BLOCK: &str = "rialto/contentBlock";

/// A task whose files are references. `has_blocks` says whether content blocks are the task's parts, one by one.
pub(super) fn referred(task: &Task, has_blocks: bool) -> Cow<'_, Task> {
    let is_file = |part: &Part| matches!(part.content, Content::Raw(_));
    let made = task.artifacts.iter().flat_map(|artifact| &artifact.parts);
    let said = task.message.iter().flat_map(|message| &message.parts);
    if !made.chain(said).any(is_file) {
        return Cow::Borrowed(task);
    }
    let mut light = task.clone();
    let id = task.head.id.as_str();
    let mut block = 0;
    for (artifact, made) in light.artifacts.iter_mut().enumerate() {
        for (at, part) in made.parts.iter_mut().enumerate() {
            refer(part, &ResultPath::Part(artifact, at).in_task(id), has_blocks.then_some(block));
            block += 1;
        }
    }
    let has_said_blocks = has_blocks && light.artifacts.is_empty();
    for (at, part) in light.message.iter_mut().flat_map(|message| &mut message.parts).enumerate() {
        refer(part, &ResultPath::Said(at).in_task(id), has_said_blocks.then_some(at));
    }
    Cow::Owned(light)
}

fn refer(part: &mut Part, address: &str, block: Option<usize>) {
    if !matches!(part.content, Content::Raw(_)) {
        return;
    }
    part.content = Content::Url(address.to_owned());
    if let Some(block) = block {
        let mut metadata: Extra =
            part.metadata.as_ref().and_then(|known| known.read().ok()).unwrap_or_default();
        metadata.push(CONTENT_BLOCK, Json::encode(&block));
        part.metadata = Some(Json::encode(&metadata));
    }
}
