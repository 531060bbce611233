//! Yielding before a write, so that tasks already queued on a thread run first.

use std::{future::poll_fn, task::Poll};

/// Yields once, so that tasks already queued on this thread run before the caller writes to its socket.
///
/// The reader at the other end is woken by the write. If another task of this thread writes only after it has computed something, the
/// reader has fallen asleep again by then and is woken twice. Tasks that write right after one another wake it once.
pub async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if has_yielded {
            return Poll::Ready(());
        }
        has_yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn queued_tasks_run_before_a_task_that_yielded_and_later_tasks_after_it() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let run = |name: &'static str| {
            let sender = sender.clone();
            async move {
                sender.send(("computes", name)).unwrap();
                yield_once().await;
                sender.send(("writes", name)).unwrap();
            }
        };
        let (first, second) = (tokio::spawn(run("first")), tokio::spawn(run("second")));
        let late = run("late");
        first.await.unwrap();
        tokio::spawn(late).await.unwrap();
        second.await.unwrap();
        let order =
            [("computes", "first"), ("computes", "second"), ("writes", "first"), ("writes", "second")];
        assert_eq!(receiver.try_iter().take(4).collect::<Vec<_>>(), order);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [("computes", "late"), ("writes", "late")]);
    }
}
