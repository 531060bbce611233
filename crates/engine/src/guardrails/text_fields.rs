//! Where words are in what is said and told.

use std::borrow::Cow;

use rialto_model::{
    call::OriginalMessage,
    event::{Event, EventAside},
    json::{Extra, Json},
    message::{Artifact, Content, Message, Part},
};

/// A place with words in it.
pub(super) enum TextField<'a> {
    /// The content itself. `is_whole` says whether it is all that is said: only then its length and its shape count.
    Parts {
        parts: &'a mut Vec<Part>,
        is_whole: bool,
    },
    Words(&'a mut String),
    Facts(&'a mut Json),
    Extra(&'a mut Extra),
}

// === impl Slot ===

impl TextField<'_> {
    /// What is in it, as parts.
    pub(super) fn parts(&self) -> Cow<'_, [Part]> {
        match self {
            Self::Parts { parts, .. } => Cow::Borrowed(parts),
            Self::Words(text) => Cow::Owned(vec![Part::text(text.as_str())]),
            Self::Facts(json) => Cow::Owned(vec![Part::data((*json).clone())]),
            Self::Extra(extra) => Cow::Owned(vec![Part::data(Json::encode(&**extra))]),
        }
    }

    pub(super) const fn is_whole(&self) -> bool {
        matches!(self, Self::Parts { is_whole: true, .. })
    }

    pub(super) const fn is_content(&self) -> bool {
        matches!(self, Self::Parts { .. })
    }

    /// Puts the same back without what was found.
    pub(super) fn put(&mut self, mut left: Vec<Part>) {
        match self {
            Self::Parts { parts, .. } => **parts = left,
            Self::Words(text) => {
                if let Some(Part { content: Content::Text(words), .. }) = left.pop() {
                    **text = words;
                }
            }
            Self::Facts(json) => {
                if let Some(Part { content: Content::Data(data), .. }) = left.pop() {
                    **json = data;
                }
            }
            Self::Extra(extra) => {
                if let Some(Part { content: Content::Data(data), .. }) = left.pop() {
                    **extra = data.read().unwrap_or_default();
                }
            }
        }
    }
}

/// What was said, beside the parts that are the call's own.
pub(super) fn of_spoken(spoken: &mut OriginalMessage, with_parts: bool) -> Vec<TextField<'_>> {
    let mut slots = Vec::new();
    of_message(&mut spoken.message, false, &mut slots);
    if !with_parts {
        slots.retain(|slot| !slot.is_content());
    }
    slots.extend(spoken.metadata.as_mut().map(TextField::Facts));
    slots
}

/// What is told of a task; of an artifact, everything but its content. `is_answer` says whether closing words are all there is.
pub(super) fn of_event(event: &mut Event, is_answer: bool) -> Vec<TextField<'_>> {
    let mut slots = Vec::new();
    match event {
        Event::Accepted { aside, .. } => of_aside(aside, &mut slots),
        Event::Artifact { artifact, aside, .. } => {
            let Artifact { name, description, metadata, extra, .. } = artifact;
            slots.extend(name.as_mut().map(TextField::Words));
            slots.extend(description.as_mut().map(TextField::Words));
            of_facts(metadata, extra, &mut slots);
            of_aside(aside, &mut slots);
        }
        Event::Progress { message, aside, .. }
        | Event::Asked { message, aside, .. }
        | Event::Rejected { message, aside }
        | Event::Canceled { message, aside } => {
            message.iter_mut().for_each(|message| of_message(message, false, &mut slots));
            of_aside(aside, &mut slots);
        }
        Event::Finished { message, aside } => {
            message.iter_mut().for_each(|message| of_message(message, is_answer, &mut slots));
            of_aside(aside, &mut slots);
        }
        Event::Answered { message, .. } => of_message(message, false, &mut slots),
        Event::Replied { message } => of_message(message, true, &mut slots),
        Event::Failed { failure, message, aside } => {
            slots.push(TextField::Words(&mut failure.message));
            slots.extend(failure.data.as_mut().map(TextField::Facts));
            message.iter_mut().for_each(|message| of_message(message, false, &mut slots));
            of_aside(aside, &mut slots);
        }
    }
    slots
}

fn of_message<'a>(message: &'a mut Message, is_whole: bool, slots: &mut Vec<TextField<'a>>) {
    slots.push(TextField::Parts { parts: &mut message.parts, is_whole });
    of_facts(&mut message.metadata, &mut message.extra, slots);
}

fn of_aside<'a>(aside: &'a mut EventAside, slots: &mut Vec<TextField<'a>>) {
    of_facts(&mut aside.metadata, &mut aside.extra, slots);
}

fn of_facts<'a>(metadata: &'a mut Option<Json>, extra: &'a mut Extra, slots: &mut Vec<TextField<'a>>) {
    slots.extend(metadata.as_mut().map(TextField::Facts));
    if !extra.is_empty() {
        slots.push(TextField::Extra(extra));
    }
}
