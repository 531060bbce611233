//! Promises about messages and ends of MCP sessions.

use rialto_model::store::{MAX_SESSION_AGE, MAX_SESSION_MESSAGE_AGE, SessionMessage, Store};

use super::at;

fn message(session: &str, body: &str) -> SessionMessage {
    SessionMessage { session: session.to_owned(), body: Some(body.to_owned()), at: at(10) }
}

/// Messages are read once, in order, by a reader that remembers the last number.
pub async fn session_messages_are_read_in_order(store: &dyn Store) {
    assert_eq!(store.last_session_message().await.unwrap(), 0);
    let messages: Vec<_> = (0..20).map(|n| message("one", &format!("{n}"))).collect();
    let put = futures::future::join_all(messages.iter().map(|message| store.put_session_message(message)));
    assert!(put.await.iter().all(Result::is_ok));
    let read = store.session_messages(0, 15).await.unwrap();
    assert_eq!(read.len(), 15);
    assert!(read.is_sorted_by_key(|read| read.number));
    let rest = store.session_messages(read[14].number, 99).await.unwrap();
    assert_eq!(rest.len(), 5);
    assert!(read.iter().chain(&rest).all(|read| messages.contains(&read.message)));
    assert_eq!(store.last_session_message().await.unwrap(), rest[4].number);
}

/// Messages that were delivered or are old are removed, and their numbers are not given again.
pub async fn session_messages_are_removed_once_they_are_of_no_use(store: &dyn Store) {
    for body in ["1", "2"] {
        store.put_session_message(&message("one", body)).await.unwrap();
    }
    let last = store.last_session_message().await.unwrap();
    store.remove_session_message(last).await.unwrap();
    assert_eq!(store.session_messages(0, 99).await.unwrap().len(), 1);
    let late = SessionMessage { at: at(11) + MAX_SESSION_MESSAGE_AGE, ..message("two", "late") };
    store.put_session_message(&late).await.unwrap();
    let left = store.session_messages(0, 99).await.unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].message, late);
    assert!(left[0].number > last, "{left:?}");
}

/// The end of a session outlives messages, for as long as its id could be used.
pub async fn an_ended_session_stays_ended(store: &dyn Store) {
    store.put_session_message(&message("one", "{}")).await.unwrap();
    assert!(!store.is_session_ended("one").await.unwrap());
    store.put_session_message(&SessionMessage { body: None, ..message("one", "") }).await.unwrap();
    assert!(store.is_session_ended("one").await.unwrap());
    assert!(!store.is_session_ended("two").await.unwrap());
    let late = SessionMessage { at: at(11) + MAX_SESSION_MESSAGE_AGE, ..message("two", "late") };
    store.put_session_message(&late).await.unwrap();
    assert!(store.is_session_ended("one").await.unwrap());
    let later = SessionMessage { at: at(11) + MAX_SESSION_AGE, ..message("two", "later") };
    store.put_session_message(&later).await.unwrap();
    assert!(!store.is_session_ended("one").await.unwrap());
}
