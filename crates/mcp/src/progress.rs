//! How far a call is, as its client hears it: a number that only goes up, and a line to read.
//!
//! An agent that says itself how far it is, in the metadata of its status, is quoted. Everything else counts one up, or, beside an
//! agent's own numbers, just a little, so that those stay true.

use rialto_model::{
    event::Event,
    json::Json,
    message::{Content, Message, Part},
};
use serde_json::Value;

/// Progress is told in at most so many characters: the whole text is in the result.
const TOLD: usize = 1_000;

/// By which part of the whole (of one, if the whole is not known) a note without a number moves on.
const LITTLE: f64 = 1e-6;

/// Counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    last: Option<f64>,
    total: Option<f64>,
    /// Whether the agent counts.
    is_agents: bool,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mark {
    /// More than the last time.
    pub(crate) progress: f64,
    /// How much it will be in the end, if the agent says so.
    pub(crate) total: Option<f64>,
}

// === impl Meter ===

impl Meter {
    /// Something happened, and the agent may say how far it is.
    pub(crate) fn happened(&mut self, event: &Event) -> Mark {
        match own(event) {
            Some(own) => self.quote(own),
            None => self.next(),
        }
    }

    /// Something else is to be told.
    pub(crate) fn next(&mut self) -> Mark {
        let last = self.last.unwrap_or_default();
        let step = if self.is_agents { self.total.map_or(LITTLE, |total| total.abs() * LITTLE) } else { 1.0 };
        // Beside a very large number a small step is none.
        let progress = (last + step).max(last.next_up());
        self.last = Some(progress);
        Mark { progress, total: self.total }
    }

    fn quote(&mut self, own: Mark) -> Mark {
        (self.is_agents, self.total) = (true, own.total.or(self.total));
        if self.last.is_some_and(|last| own.progress <= last) {
            return self.next();
        }
        self.last = Some(own.progress);
        Mark { progress: own.progress, total: self.total }
    }
}

/// What an event is worth telling while the call goes on.
pub(crate) fn line(event: &Event) -> Option<String> {
    match event {
        Event::Progress { working, message, .. } => {
            let said = message.as_ref().map(Message::text).filter(|text| !text.is_empty());
            Some(said.map_or_else(|| if *working { "working" } else { "queued" }.to_owned(), shortened))
        }
        Event::Artifact { artifact, .. } => {
            let name = artifact.name.as_deref().unwrap_or(&artifact.id);
            let bytes: usize = artifact.parts.iter().map(size).sum();
            Some(shortened(format!("artifact {name} ({bytes} bytes)")))
        }
        Event::Accepted { .. }
        | Event::Asked { .. }
        | Event::Answered { .. }
        | Event::Finished { .. }
        | Event::Replied { .. }
        | Event::Failed { .. }
        | Event::Rejected { .. }
        | Event::Canceled { .. } => None,
    }
}

/// How far an agent says it is: `progress` and `total`, or `percent`, beside its status or its words.
fn own(event: &Event) -> Option<Mark> {
    let Event::Progress { message, aside, .. } = event else { return None };
    let noted = aside.metadata.as_ref().and_then(mark);
    noted.or_else(|| message.as_ref().and_then(|message| message.metadata.as_ref()).and_then(mark))
}

fn mark(metadata: &Json) -> Option<Mark> {
    let metadata = metadata.value();
    let inner = metadata.get("progress").filter(|progress| progress.is_object());
    let place = inner.unwrap_or(&metadata);
    let number = |name: &str| place.get(name).and_then(Value::as_f64).filter(|number| *number >= 0.0);
    if let Some(progress) = ["progress", "current", "value"].iter().find_map(|name| number(name)) {
        let total = number("total").filter(|total| *total >= progress);
        return Some(Mark { progress, total });
    }
    let percent = number("percent").or_else(|| number("percentage"))?;
    Some(Mark { progress: percent, total: Some(100.0) })
}

/// How many bytes a part has, roughly: a file is counted as what it is, not as what it is written in.
fn size(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) => text.len(),
        Content::Data(json) | Content::Unknown(json) => json.get().len(),
        Content::Raw(base64) => base64.trim_end_matches('=').len() * 3 / 4,
        Content::Url(url) => url.len(),
    }
}

/// A text that is not too long to be told beside something.
pub(crate) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(TOLD) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rialto_model::{
        event::Aside,
        message::{Artifact, Role},
    };
    use serde_json::json;

    use super::*;

    fn noted(metadata: Value) -> Event {
        let aside = Aside { metadata: Some(Json::from(metadata)), ..Aside::default() };
        Event::Progress { working: true, message: None, aside }
    }

    fn silent() -> Event {
        Event::Progress { working: true, message: None, aside: Aside::default() }
    }

    fn at(progress: f64, total: impl Into<Option<f64>>) -> Mark {
        Mark { progress, total: total.into() }
    }

    #[test]
    fn without_numbers_each_note_counts_one() {
        let mut meter = Meter::default();
        assert_eq!([meter.happened(&silent()), meter.next()], [at(1.0, None), at(2.0, None)]);
    }

    #[test]
    fn an_agents_own_numbers_are_quoted_wherever_they_stand() {
        let spoken = |metadata: Value| {
            let mut message = Message::new("m", Role::Agent, Vec::new());
            message.metadata = Some(Json::from(metadata));
            Event::Progress { working: true, message: Some(message), aside: Aside::default() }
        };
        for (event, mark) in [
            (noted(json!({ "progress": 0, "total": 100 })), at(0.0, 100.0)),
            (noted(json!({ "progress": 0.5 })), at(0.5, None)),
            (noted(json!({ "progress": { "current": 3, "total": 4 } })), at(3.0, 4.0)),
            (noted(json!({ "percent": 12.5 })), at(12.5, 100.0)),
            (spoken(json!({ "progress": 7 })), at(7.0, None)),
            (noted(json!({ "progress": 7, "total": 5 })), at(7.0, None)),
            (noted(json!({ "progress": -1 })), at(1.0, None)),
            (noted(json!({ "progress": "half" })), at(1.0, None)),
        ] {
            assert_eq!(Meter::default().happened(&event), mark, "{event:?}");
        }
    }

    #[test]
    fn a_heartbeat_does_not_spoil_an_agents_numbers() {
        let mut meter = Meter::default();
        meter.happened(&noted(json!({ "progress": 50, "total": 100 })));
        let beat = meter.next();
        assert!(beat.progress > 50.0 && beat.progress < 50.01, "{beat:?}");
        assert_eq!(meter.happened(&noted(json!({ "progress": 51 }))), at(51.0, 100.0));
    }

    #[test]
    fn a_piece_is_told_by_its_name_and_size() {
        let piece = |parts| {
            let artifact = Artifact { name: Some("report".into()), ..Artifact::new("a1", parts) };
            Event::Artifact { artifact, append: false, last: false, aside: Aside::default() }
        };
        let raw = Part::new(Content::Raw("aGVsbG8=".into()));
        assert_eq!(line(&piece(vec![Part::text("ab"), raw])).as_deref(), Some("artifact report (7 bytes)"));
        let long = line(&piece(Vec::new())).unwrap();
        assert_eq!(long, "artifact report (0 bytes)");
    }

    proptest! {
        #[test]
        fn it_only_goes_up(notes in prop::collection::vec(prop::option::of(-1e300..1e300_f64), 1..50)) {
            let mut meter = Meter::default();
            let mut last = f64::NEG_INFINITY;
            for note in notes {
                let event = note.map_or_else(silent, |progress| noted(json!({ "progress": progress })));
                let mark = meter.happened(&event);
                prop_assert!(mark.progress > last, "{} after {last}", mark.progress);
                last = mark.progress;
            }
        }
    }
}
