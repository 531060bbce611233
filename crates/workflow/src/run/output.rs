//! Output of a task as a JSON value.

use rialto_model::{
    json::Json,
    message::{Content, Part},
    task::Task,
};
use serde_json::{Value, json};

/// A single data part is itself, a single text is a string, anything else is the list of all parts.
pub(super) fn task_output(task: &Task) -> Json {
    let made: Vec<&Part> = task.artifacts.iter().flat_map(|artifact| &artifact.parts).collect();
    let said = || task.message.iter().flat_map(|message| &message.parts).collect();
    let parts = if made.is_empty() { said() } else { made };
    match parts.as_slice() {
        [] => Json::null(),
        [Part { content: Content::Data(data), .. }] => data.clone(),
        [Part { content: Content::Text(text), .. }] => Json::encode(text),
        parts => Json::encode(&parts.iter().map(|part| part_as_json(part)).collect::<Vec<_>>()),
    }
}

/// A value as parts of a result: a string is a text, everything else is data.
pub(super) fn output_part(output: Json) -> Part {
    match output.read::<String>() {
        Ok(text) => Part::text(text),
        Err(_) => Part::data(output),
    }
}

fn part_as_json(part: &Part) -> Json {
    let file = |member: &str, value: &str| {
        let mut file = json!({ "kind": "file", member: value });
        for (name, given) in [("name", &part.filename), ("mediaType", &part.media_type)] {
            if let Some(given) = given {
                file[name] = Value::from(given.as_str());
            }
        }
        Json::encode(&file)
    };
    match &part.content {
        Content::Text(text) => Json::encode(&json!({ "kind": "text", "text": text })),
        Content::Data(data) => {
            let members = [("kind".to_owned(), Json::encode("data")), ("data".to_owned(), data.clone())];
            Json::encode(&members.into_iter().collect::<rialto_model::json::Extra>())
        }
        Content::Raw(bytes) => file("bytes", bytes),
        Content::Url(url) => file("uri", url),
        Content::Unknown(part) => part.clone(),
    }
}
