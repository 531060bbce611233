//! Results as resources: `resources/list`, `resources/read`, and their equivalent for models in `get_task`.
//!
//! Everything is read from the journal of the caller's own tasks. Tasks of other callers, deleted tasks and unknown tasks all give the
//! same error: no such resource.

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use rialto_model::{
    failure::{Failure, FailureKind},
    ids::TaskId,
    json::Json,
    message::{Content, Part},
    store::TaskFilter,
    task::Task,
    token_scopes::TokenScope,
};
use rmcp::{
    ErrorData,
    model::{
        Annotations, ContentBlock, MetaObject, ReadResourceResult, Resource, ResourceContents,
        ResourceTemplate,
    },
};
use serde_json::json;

use crate::{
    builtin_tools::{self, GetTaskArgs},
    client_profile::ClientProfile,
    errors,
    result_chunks::{ChunkBody, ResultChunk, ResultContent, kind_of, size_of},
    result_uri::{ResultPath, ResultUri},
    tool_result::{ResultMeta, ToolResult},
    tool_service::{ToolService, may},
};

/// Maximum number of tasks that are read for one page.
const MAX_TASKS_PER_PAGE: usize = 25;

/// Resources after which a page ends, at the end of a task.
const MIN_RESOURCES_PER_PAGE: usize = 100;

/// Maximum number of listed parts of one task; the others are named in its result.
const MAX_RESOURCES_PER_TASK: usize = 50;

/// One page of resources.
pub(crate) struct ResourcePage {
    pub(crate) resources: Vec<Resource>,
    /// Cursor of the next page.
    pub(crate) next: Option<String>,
}

// === impl ToolService ===

impl ToolService {
    /// `resources/read`: a chunk of a result. The flag is true when it can never change.
    pub(crate) async fn read(
        &self,
        client: &ClientProfile,
        uri: &str,
    ) -> Result<(ReadResourceResult, bool), ErrorData> {
        may(client, TokenScope::Call)?;
        let no_such = || {
            let message = format!("there is no resource \"{uri}\"; resources/list shows those there are");
            ErrorData::resource_not_found(message, Some(json!({ "uri": uri })))
        };
        let address = ResultUri::parse(uri).ok_or_else(no_such)?;
        let task = match self.engine.tasks().read(&client.caller, &address.task).await {
            Ok(task) => task,
            Err(failure) if failure.kind == FailureKind::NotFound => return Err(no_such()),
            Err(failure) => return Err(errors::error(&failure)),
        };
        let held = address.place.find(&task).and_then(ResultContent::of).ok_or_else(no_such)?;
        let piece = held.piece(address.offset, self.piece_size());
        let piece = piece.ok_or_else(|| errors::error(&too_far(address.offset, held.size())))?;
        let contents = match piece.body {
            ChunkBody::Text(text) => ResourceContents::text(text, uri),
            ChunkBody::Bytes(bytes) => ResourceContents::blob(BASE64_STANDARD.encode(bytes), uri),
        };
        let mut contents = vec![contents.with_mime_type(held.kind.clone())];
        let next = piece.next().map(|offset| address.at(offset));
        if !piece.is_whole() {
            let words = match &next {
                Some(next) => format!("{}; resources/read of {next} reads on", place_of(&piece)),
                None => format!("{}; this is the last piece", place_of(&piece)),
            };
            contents.push(ResourceContents::text(words, format!("{uri}#place")));
        }
        let mut result = ReadResourceResult::new(contents);
        result.meta = Some(marks(&task, &piece, next.as_deref()));
        Ok((result, task.head.state.is_terminal()))
    }

    /// `resources/list`: results of the caller's latest tasks.
    pub(crate) async fn shelf(
        &self,
        client: &ClientProfile,
        cursor: Option<&str>,
    ) -> Result<ResourcePage, ErrorData> {
        may(client, TokenScope::Call)?;
        let before = match cursor {
            None => None,
            Some(cursor) => Some(read_cursor(cursor).ok_or_else(|| {
                let message = "this cursor is not one that resources/list gave; ask for the first page again";
                errors::error(&Failure::new(FailureKind::Invalid, message))
            })?),
        };
        self.shelf_before(client, before).await.map_err(|failure| errors::error(&failure))
    }

    async fn shelf_before(
        &self,
        client: &ClientProfile,
        before: Option<TaskId>,
    ) -> Result<ResourcePage, Failure> {
        let filter = TaskFilter { before, limit: MAX_TASKS_PER_PAGE, ..TaskFilter::default() };
        let heads = self.engine.tasks().list(&client.caller, filter).await?;
        let mut shelf = ResourcePage { resources: Vec::new(), next: None };
        let are_all = heads.len() < MAX_TASKS_PER_PAGE;
        let last = heads.len().saturating_sub(1);
        for (at, head) in heads.into_iter().enumerate() {
            match self.engine.tasks().read(&client.caller, head.id.as_str()).await {
                Ok(task) => {
                    shelf.resources.extend(listed(&task, &builtin_tools::address(&self.engine, &task)));
                }
                // Deleted meanwhile.
                Err(failure) if failure.kind == FailureKind::NotFound => {}
                Err(failure) => return Err(failure),
            }
            if (at == last && !are_all) || (at < last && shelf.resources.len() >= MIN_RESOURCES_PER_PAGE) {
                shelf.next = Some(BASE64_URL_SAFE_NO_PAD.encode(head.id.as_str()));
                break;
            }
        }
        Ok(shelf)
    }

    /// `get_task`: state of a task, or a chunk of a part of its result.
    pub(crate) async fn look_at(&self, client: &ClientProfile, args: &Json) -> Result<ToolResult, Failure> {
        let GetTaskArgs { task_id, part, offset } = builtin_tools::read(args)?;
        let Some(part) = part else {
            return match offset {
                None => builtin_tools::get_task(&self.engine, client, task_id.as_deref()).await,
                Some(_) => {
                    Err(Failure::new(FailureKind::Invalid, "an offset is one in a part: name the part too"))
                }
            };
        };
        let Some(task_id) = task_id else {
            return Err(Failure::new(
                FailureKind::Invalid,
                "a part is one of a task's result: name the task_id too",
            ));
        };
        let task = self.engine.tasks().read(&client.caller, &task_id).await?;
        let no_such = || {
            let message = format!(
                "task {task_id} has no part \"{part}\"; a result that leaves one out says how it is called, like \
                 artifacts/0/parts/0"
            );
            Failure::new(FailureKind::NotFound, message)
        };
        // A URI copied from a result may be repeated here.
        let address = ResultUri::parse(&part).filter(|address| address.task == task.head.id.as_str());
        let place = address
            .as_ref()
            .map(|address| address.place)
            .or_else(|| ResultPath::parse(&part))
            .ok_or_else(no_such)?;
        let offset = offset.or(address.map(|address| address.offset)).unwrap_or_default();
        let held = place.find(&task).and_then(ResultContent::of).ok_or_else(no_such)?;
        let piece = held.piece(offset, self.piece_size()).ok_or_else(|| too_far(offset, held.size()))?;
        let content = match piece.body {
            ChunkBody::Text(text) => ContentBlock::text(text),
            ChunkBody::Bytes(bytes) => {
                let blob = ResourceContents::blob(
                    BASE64_STANDARD.encode(bytes),
                    place.in_task(task.head.id.as_str()),
                );
                ContentBlock::resource(blob.with_mime_type(held.kind.clone()))
            }
        };
        let words = match piece.next() {
            Some(next) => format!(
                "{}; get_task with task_id \"{task_id}\", part \"{place}\" and offset {next} reads on",
                place_of(&piece)
            ),
            None => format!("{}; there is no more", place_of(&piece)),
        };
        // Some clients show structured content alone, and the content is what was requested.
        let content = vec![content, ContentBlock::text(words)];
        Ok(ToolResult { content, structured: None, is_error: false, marks: ResultMeta::of(&task) })
    }

    fn piece_size(&self) -> usize {
        self.config.piece_kb.max(1).saturating_mul(1_024)
    }
}

/// URI templates of results.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_description(description)
    };
    vec![
        template(
            "rialto://tasks/{task}/artifacts/{artifact}/parts/{part}{?offset}",
            "part",
            "One part of what a task has made; artifacts and parts are counted from 0, and offset is a byte to read on at.",
        ),
        template(
            "rialto://tasks/{task}/artifacts/{artifact}{?offset}",
            "artifact",
            "All of an artifact: its text if it is nothing but texts, else its JSON.",
        ),
        template(
            "rialto://tasks/{task}/message/parts/{part}{?offset}",
            "message",
            "One part of what the agent of a task said last.",
        ),
    ]
}

/// Parts of a task as resources. Parts that are only links are excluded.
fn listed(task: &Task, agent: &str) -> Vec<Resource> {
    let mut resources = Vec::new();
    for (at, artifact) in task.artifacts.iter().enumerate() {
        let name = artifact.name.as_deref().unwrap_or(&artifact.id);
        for (number, part) in artifact.parts.iter().enumerate() {
            let resource = resource(task, agent, part, ResultPath::Part(at, number), name);
            resources.extend(resource.map(|resource| match &artifact.description {
                Some(description) => resource.with_description(description),
                None => resource,
            }));
        }
    }
    if task.is_reply
        && let Some(message) = &task.message
    {
        let parts = message.parts.iter().enumerate();
        resources.extend(
            parts.filter_map(|(at, part)| resource(task, agent, part, ResultPath::Said(at), "message")),
        );
    }
    resources.truncate(MAX_RESOURCES_PER_TASK);
    resources
}

fn resource(task: &Task, agent: &str, part: &Part, place: ResultPath, name: &str) -> Option<Resource> {
    if matches!(part.content, Content::Url(_)) {
        return None;
    }
    let skill = task.head.skill.as_ref().map_or_else(|| agent.to_owned(), |skill| format!("{agent}.{skill}"));
    let mut annotations = Annotations::default();
    annotations.last_modified = Some(task.head.updated_at.to_string());
    let resource =
        Resource::new(place.in_task(task.head.id.as_str()), part.filename.as_deref().unwrap_or(name))
            .with_title(format!("{} ({skill})", part.filename.as_deref().unwrap_or(name)))
            .with_mime_type(kind_of(part))
            .with_annotations(annotations);
    Some(match u64::try_from(size_of(part)) {
        Ok(size) => resource.with_size(size),
        Err(_) => resource,
    })
}

/// `_meta` of a chunk, for programs.
fn marks(task: &Task, piece: &ResultChunk<'_>, next: Option<&str>) -> MetaObject {
    let mut marks = MetaObject::new();
    marks.insert("rialto/taskId".to_owned(), json!(task.head.id));
    marks.insert("rialto/offset".to_owned(), json!(piece.from));
    marks.insert("rialto/size".to_owned(), json!(piece.size));
    if let Some(next) = next {
        marks.insert("rialto/next".to_owned(), json!(next));
    }
    marks
}

/// Position of a chunk, for people.
fn place_of(piece: &ResultChunk<'_>) -> String {
    format!("bytes {} to {} of {}", piece.from, piece.to, piece.size)
}

fn too_far(offset: usize, size: usize) -> Failure {
    Failure::new(FailureKind::Invalid, format!("there is nothing at offset {offset}: it has {size} bytes"))
}

fn read_cursor(cursor: &str) -> Option<TaskId> {
    let id = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    id.starts_with("task_").then(|| TaskId::from(id.as_str()))
}
