//! Progress of a call: a number that only increases, and a line of text.
//!
//! Progress that an agent reports in the metadata of its status is passed on. Every other event adds one, or, beside an agent's own
//! numbers, a tiny step that leaves them correct.

use rialto_model::{
    event::Event,
    json::Json,
    message::{Content, Message, Part},
};
use serde_json::Value;

/// Maximum length of a progress message, in characters: the complete text is in the result.
const MAX_MESSAGE_LENGTH: usize = 1_000;

/// Step of an event without a number, as a fraction of the total (or of one, if the total is unknown).
const MIN_STEP: f64 = 1e-6;

/// Progress counter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProgressMeter {
    last: Option<f64>,
    total: Option<f64>,
    /// True when the agent reports progress.
    is_agents: bool,
}

/// Progress value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ProgressMark {
    /// Larger than the last value.
    pub(crate) progress: f64,
    /// Expected final value, if the agent reports it.
    pub(crate) total: Option<f64>,
}

// === impl ProgressMeter ===

impl ProgressMeter {
    /// Counts an event, which may carry the agent's progress.
    pub(crate) fn happened(&mut self, event: &Event) -> ProgressMark {
        match own(event) {
            Some(own) => self.quote(own),
            None => self.next(),
        }
    }

    /// Counts another notification.
    pub(crate) fn next(&mut self) -> ProgressMark {
        let last = self.last.unwrap_or_default();
        let step =
            if self.is_agents { self.total.map_or(MIN_STEP, |total| total.abs() * MIN_STEP) } else { 1.0 };
        // Beside a very large number a small step has no effect.
        let progress = (last + step).max(last.next_up());
        self.last = Some(progress);
        ProgressMark { progress, total: self.total }
    }

    fn quote(&mut self, own: ProgressMark) -> ProgressMark {
        (self.is_agents, self.total) = (true, own.total.or(self.total));
        if self.last.is_some_and(|last| own.progress <= last) {
            return self.next();
        }
        self.last = Some(own.progress);
        ProgressMark { progress: own.progress, total: self.total }
    }
}

/// Progress message of an event, if it is worth one.
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

/// Progress in an agent's event: `progress` and `total`, or `percent`, in the metadata of its status or message.
fn own(event: &Event) -> Option<ProgressMark> {
    let Event::Progress { message, aside, .. } = event else { return None };
    let noted = aside.metadata.as_ref().and_then(mark);
    noted.or_else(|| message.as_ref().and_then(|message| message.metadata.as_ref()).and_then(mark))
}

fn mark(metadata: &Json) -> Option<ProgressMark> {
    let metadata = metadata.value();
    let inner = metadata.get("progress").filter(|progress| progress.is_object());
    let place = inner.unwrap_or(&metadata);
    let number = |name: &str| place.get(name).and_then(Value::as_f64).filter(|number| *number >= 0.0);
    if let Some(progress) = ["progress", "current", "value"].iter().find_map(|name| number(name)) {
        let total = number("total").filter(|total| *total >= progress);
        return Some(ProgressMark { progress, total });
    }
    let percent = number("percent").or_else(|| number("percentage"))?;
    Some(ProgressMark { progress: percent, total: Some(100.0) })
}

/// Approximate size of a part in bytes: a file counts with its own size, not that of its base64.
fn size(part: &Part) -> usize {
    match &part.content {
        Content::Text(text) => text.len(),
        Content::Data(json) | Content::Unknown(json) => json.get().len(),
        Content::Raw(base64) => base64.trim_end_matches('=').len() * 3 / 4,
        Content::Url(url) => url.len(),
    }
}

/// Truncates text for a progress message.
pub(crate) fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_MESSAGE_LENGTH) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rialto_model::{
        event::EventAside,
        message::{Artifact, Role},
    };
    use serde_json::json;

    use super::*;

    fn noted(metadata: Value) -> Event {
        let aside = EventAside { metadata: Some(Json::from(metadata)), ..EventAside::default() };
        Event::Progress { working: true, message: None, aside }
    }

    fn silent() -> Event {
        Event::Progress { working: true, message: None, aside: EventAside::default() }
    }

    fn at(progress: f64, total: impl Into<Option<f64>>) -> ProgressMark {
        ProgressMark { progress, total: total.into() }
    }

    #[test]
    fn without_numbers_each_note_counts_one() {
        let mut meter = ProgressMeter::default();
        assert_eq!([meter.happened(&silent()), meter.next()], [at(1.0, None), at(2.0, None)]);
    }

    #[test]
    fn an_agents_own_numbers_are_quoted_wherever_they_stand() {
        let spoken = |metadata: Value| {
            let mut message = Message::new("m", Role::Agent, Vec::new());
            message.metadata = Some(Json::from(metadata));
            Event::Progress { working: true, message: Some(message), aside: EventAside::default() }
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
            assert_eq!(ProgressMeter::default().happened(&event), mark, "{event:?}");
        }
    }

    #[test]
    fn a_heartbeat_does_not_spoil_an_agents_numbers() {
        let mut meter = ProgressMeter::default();
        meter.happened(&noted(json!({ "progress": 50, "total": 100 })));
        let beat = meter.next();
        assert!(beat.progress > 50.0 && beat.progress < 50.01, "{beat:?}");
        assert_eq!(meter.happened(&noted(json!({ "progress": 51 }))), at(51.0, 100.0));
    }

    #[test]
    fn a_piece_is_told_by_its_name_and_size() {
        let piece = |parts| {
            let artifact = Artifact { name: Some("report".into()), ..Artifact::new("a1", parts) };
            Event::Artifact { artifact, append: false, last: false, aside: EventAside::default() }
        };
        let raw = Part::new(Content::Raw("aGVsbG8=".into()));
        assert_eq!(line(&piece(vec![Part::text("ab"), raw])).as_deref(), Some("artifact report (7 bytes)"));
        let long = line(&piece(Vec::new())).unwrap();
        assert_eq!(long, "artifact report (0 bytes)");
    }

    proptest! {
        #[test]
        fn it_only_goes_up(notes in prop::collection::vec(prop::option::of(-1e300..1e300_f64), 1..50)) {
            let mut meter = ProgressMeter::default();
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
