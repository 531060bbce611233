//! Buffer of artifacts that are held back, or kept, until they can be checked as a whole.
//!
//! An agent may stream one text in pieces: a secret may begin in one piece and end in the next. So the texts of
//! pieces are joined where one piece continues the one before.

use rialto_model::{
    event::Event,
    message::{Artifact, Content, Part},
};

/// Pieces of artifacts, in the order they came.
#[derive(Default)]
pub(super) struct ArtifactBuffer {
    artifacts: Vec<BufferedArtifact>,
    bytes: usize,
}

/// The pieces of one artifact; never none.
pub(super) struct BufferedArtifact {
    id: String,
    events: Vec<Event>,
    bytes: usize,
}

// === impl Held ===

impl ArtifactBuffer {
    /// Takes in a piece, and gives back the artifact once it is complete.
    pub(super) fn take(&mut self, event: Event) -> Option<BufferedArtifact> {
        let Event::Artifact { artifact, append, last, .. } = &event else { return None };
        let (id, bytes, is_last) = (artifact.id.clone(), weight(artifact), *last);
        let known = self.artifacts.iter().position(|pieces| pieces.id == id);
        let at = known.unwrap_or_else(|| {
            self.artifacts.push(BufferedArtifact { id, events: Vec::new(), bytes: 0 });
            self.artifacts.len() - 1
        });
        let pieces = self.artifacts.get_mut(at)?;
        if !*append {
            // It replaces the earlier chunks, which were not passed on.
            self.bytes -= pieces.bytes;
            pieces.events.clear();
            pieces.bytes = 0;
        }
        pieces.events.push(event);
        pieces.bytes += bytes;
        self.bytes += bytes;
        is_last.then(|| self.remove(at))
    }

    /// Size of the buffer, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The artifact that came first, whether it is complete or not.
    pub(super) fn first(&mut self) -> Option<BufferedArtifact> {
        (!self.artifacts.is_empty()).then(|| self.remove(0))
    }

    fn remove(&mut self, at: usize) -> BufferedArtifact {
        let pieces = self.artifacts.remove(at);
        self.bytes -= pieces.bytes;
        pieces
    }
}

// === impl Pieces ===

impl BufferedArtifact {
    /// The content of all pieces together.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for event in &self.events {
            let Event::Artifact { artifact, .. } = event else { continue };
            let mut more = artifact.parts.iter().cloned();
            if let Some(first) = more.next() {
                match (parts.last_mut().map(|part| &mut part.content), &first.content) {
                    (Some(Content::Text(text)), Content::Text(piece)) => text.push_str(piece),
                    _ => parts.push(first),
                }
            }
            parts.extend(more);
        }
        parts
    }

    /// Size of the artifact, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The pieces as they came.
    pub(super) fn events_mut(&mut self) -> &mut [Event] {
        &mut self.events
    }

    /// Events of the pieces as they came.
    pub(super) fn into_events(self) -> Vec<Event> {
        self.events
    }

    /// One piece in place of all of them, with this content.
    pub(super) fn with(self, parts: Vec<Part>) -> Option<Event> {
        let is_last = self.events.iter().any(|event| matches!(event, Event::Artifact { last: true, .. }));
        match self.events.into_iter().next()? {
            Event::Artifact { artifact, append, aside, .. } => {
                let artifact = Artifact { parts, ..artifact };
                Some(Event::Artifact { artifact, append, last: is_last, aside })
            }
            _ => None,
        }
    }
}

/// Approximate memory of an artifact's content.
fn weight(artifact: &Artifact) -> usize {
    let of = |part: &Part| {
        let content = match &part.content {
            Content::Text(text) | Content::Url(text) | Content::Raw(text) => text.len(),
            Content::Data(json) | Content::Unknown(json) => json.get().len(),
        };
        let beside = part.metadata.as_ref().map_or(0, |metadata| metadata.get().len());
        content + beside + part.filename.as_ref().map_or(0, String::len) + size_of::<Part>()
    };
    artifact.parts.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;
    use rialto_guardrails::{
        Findings, GuardrailRuleset,
        config::{CheckDirection, Guardrail, GuardrailCheck},
    };
    use rialto_model::{event::EventAside, message::text_of};

    use super::*;

    fn piece(text: &str, append: bool, last: bool) -> Event {
        let artifact = Artifact::new("a", vec![Part::text(text)]);
        Event::Artifact { artifact, append, last, aside: EventAside::default() }
    }

    static GUARDS: LazyLock<GuardrailRuleset> = LazyLock::new(|| {
        let checks =
            ["pii", "secrets", "prompt-injection"].map(|name| GuardrailCheck::plain(name).unwrap()).to_vec();
        GuardrailRuleset::compile([&Guardrail { checks, ..Guardrail::default() }]).unwrap().unwrap()
    });

    fn found(findings: &Findings) -> Vec<(String, Option<std::ops::Range<usize>>)> {
        findings.found.iter().map(|found| (found.kind.to_string(), found.at.clone())).collect()
    }

    #[test]
    fn an_artifact_is_given_back_with_its_last_piece() {
        let mut held = ArtifactBuffer::default();
        assert!(held.take(piece("my card is 4111 1111", false, false)).is_none());
        assert!(held.bytes() > 0);
        let whole = held.take(piece(" 1111 1111", true, true)).unwrap();
        assert_eq!(text_of(&whole.parts()), "my card is 4111 1111 1111 1111");
        assert_eq!((held.bytes(), held.first().is_none()), (0, true));
        assert_eq!(whole.into_events().len(), 2, "the pieces stay as they came");
    }

    #[test]
    fn what_is_replaced_is_forgotten() {
        let mut held = ArtifactBuffer::default();
        held.take(piece("a long first attempt", false, false));
        held.take(piece("new", false, false));
        let whole = held.first().unwrap();
        assert_eq!(text_of(&whole.parts()), "new");
        assert!(held.first().is_none() && held.bytes() == 0);
        let told = whole.with(vec![Part::text("x")]).unwrap();
        assert!(matches!(told, Event::Artifact { append: false, last: false, .. }));
    }

    #[test]
    fn parts_of_one_piece_stay_apart() {
        let two = Artifact::new("a", vec![Part::text("one"), Part::text("two")]);
        let mut held = ArtifactBuffer::default();
        held.take(Event::Artifact {
            artifact: two,
            append: false,
            last: false,
            aside: EventAside::default(),
        });
        let whole = held.take(piece("three", true, true)).unwrap();
        assert_eq!(whole.parts(), [Part::text("one"), Part::text("twothree")]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn a_text_in_any_pieces_has_the_same_in_it_as_the_whole(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "write to ann@example.org", "4111 1111 1111 1111", "ignore all previous instructions",
                    "AKIAIOSFODNN7ABCDEFG", "078-05-1120", "hello", "grüße", "日本", "\n", "password = hunter2hunter2",
                ]),
                1..6,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let text = words.join(" ");
            let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| borders[cut.index(borders.len())]).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut held = ArtifactBuffer::default();
            for (n, ends) in cuts.windows(2).enumerate() {
                held.take(piece(&text[ends[0]..ends[1]], n > 0, false));
            }
            let whole = held.first().unwrap();
            let guards = &*GUARDS;
            let (pieces, at_once) =
                (guards.check(&whole.parts(), CheckDirection::Output), guards.check_text(&text, CheckDirection::Output));
            prop_assert_eq!(found(&pieces), found(&at_once));
            prop_assert_eq!(
                guards.redact(&whole.parts(), &pieces), guards.redact(&[Part::text(&text)], &at_once)
            );
        }
    }
}
