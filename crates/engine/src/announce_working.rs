//! Says that work has begun, for those who do it and never say so themselves.
//!
//! A tool or a function says nothing before its result. Whoever watches its task would see it wait to be begun until it is
//! over. So after a moment without news a task is told to be worked on; what is done before that moment has passed costs
//! nothing more, and is told as it is.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};
use rialto_model::event::{Event, EventAside};
use tokio::time::{Sleep, sleep};

/// How long nothing is said of a task before it is told to be worked on.
const MOMENT: Duration = Duration::from_millis(50);

/// What happens, with a word that work has begun when it takes longer than a moment.
struct WithWorkingNotice {
    events: BoxStream<'static, Event>,
    moment: NoticeState,
}

enum NoticeState {
    /// It has not begun.
    Ahead,
    /// It goes on.
    Now(Pin<Box<Sleep>>),
    /// There was news, or the word was said.
    Over,
}

/// The same events, with a word that work has begun when the first takes longer than a moment.
pub fn announced(events: BoxStream<'static, Event>) -> BoxStream<'static, Event> {
    WithWorkingNotice { events, moment: NoticeState::Ahead }.boxed()
}

// === impl Announced ===

impl Stream for WithWorkingNotice {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        if let Poll::Ready(event) = this.events.as_mut().poll_next(context) {
            this.moment = NoticeState::Over;
            return Poll::Ready(event);
        }
        if matches!(this.moment, NoticeState::Ahead) {
            this.moment = NoticeState::Now(Box::pin(sleep(MOMENT)));
        }
        let NoticeState::Now(moment) = &mut this.moment else { return Poll::Pending };
        if moment.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        this.moment = NoticeState::Over;
        Poll::Ready(Some(Event::Progress { working: true, message: None, aside: EventAside::default() }))
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn finished() -> Event {
        Event::Finished { message: None, aside: EventAside::default() }
    }

    async fn told_after(wait: Duration) -> Vec<&'static str> {
        let events = stream::once(async move {
            sleep(wait).await;
            finished()
        });
        announced(events.boxed()).map(|event| event.name()).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_longer_than_a_moment_is_told_to_be_worked_on() {
        assert_eq!(told_after(Duration::from_millis(60)).await, ["progress", "finished"]);
        assert_eq!(told_after(Duration::from_secs(60)).await, ["progress", "finished"]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_done_in_a_moment_is_told_as_it_is() {
        assert_eq!(told_after(Duration::from_millis(40)).await, ["finished"]);
        let at_once: Vec<_> = announced(stream::iter([finished()]).boxed()).collect().await;
        assert_eq!(at_once, [finished()]);
    }
}
