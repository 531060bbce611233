//! Progress notice for backends that report nothing before their result.
//!
//! A tool or a function sends nothing before its result, so its task would stay `submitted` until its end. After a short delay
//! without an event the task is reported as working; work that ends before the delay costs nothing more.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};
use rialto_model::event::{Event, EventAside};
use tokio::time::{Sleep, sleep};

/// Time without an event after which a task is reported as working.
const NOTICE_DELAY: Duration = Duration::from_millis(50);

/// Events of a backend, with a notice if the first one takes longer than the delay.
struct WithWorkingNotice {
    events: BoxStream<'static, Event>,
    notice: NoticeState,
}

enum NoticeState {
    /// Nothing was polled yet.
    Pending,
    /// The delay runs.
    Waiting(Pin<Box<Sleep>>),
    /// An event or the notice was sent.
    Done,
}

/// Adds a notice that work has begun if the first event takes longer than the delay.
pub fn with_working_notice(events: BoxStream<'static, Event>) -> BoxStream<'static, Event> {
    WithWorkingNotice { events, notice: NoticeState::Pending }.boxed()
}

// === impl WithWorkingNotice ===

impl Stream for WithWorkingNotice {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        if let Poll::Ready(event) = this.events.as_mut().poll_next(context) {
            this.notice = NoticeState::Done;
            return Poll::Ready(event);
        }
        if matches!(this.notice, NoticeState::Pending) {
            this.notice = NoticeState::Waiting(Box::pin(sleep(NOTICE_DELAY)));
        }
        let NoticeState::Waiting(notice) = &mut this.notice else { return Poll::Pending };
        if notice.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        this.notice = NoticeState::Done;
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

    async fn events_after(wait: Duration) -> Vec<&'static str> {
        let events = stream::once(async move {
            sleep(wait).await;
            finished()
        });
        with_working_notice(events.boxed()).map(|event| event.name()).collect().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_without_an_event_for_a_while_is_reported_as_working() {
        assert_eq!(events_after(Duration::from_millis(60)).await, ["progress", "finished"]);
        assert_eq!(events_after(Duration::from_secs(60)).await, ["progress", "finished"]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_ends_at_once_gets_no_notice() {
        assert_eq!(events_after(Duration::from_millis(40)).await, ["finished"]);
        let at_once: Vec<_> = with_working_notice(stream::iter([finished()]).boxed()).collect().await;
        assert_eq!(at_once, [finished()]);
    }
}
