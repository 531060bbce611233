//! Reading what was written gives it back, but for what the wire cannot say.

use proptest::prelude::*;

use super::{any, bent};
use crate::{
    answer,
    rest::{self, RestCall},
    rpc::{self, Id},
    task::SendAnswer,
    wire::Wire,
};

proptest! {
    #[test]
    fn a_task_comes_back(wire in any::wire(), task in any::task()) {
        let text = answer::encode_task(wire, &task).text();
        let read = answer::decode_task(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(read, bent::task(wire, task), "{}", text);
    }

    #[test]
    fn the_answer_to_a_message_comes_back(wire in any::wire(), message in any::message()) {
        let said = SendAnswer::Message(message.clone());
        let text = answer::encode_send(wire, &said).text();
        let read = answer::decode_send(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(read, SendAnswer::Message(bent::message(wire, message)), "{}", text);
    }

    #[test]
    fn a_stream_event_comes_back(wire in any::wire(), event in any::stream_event()) {
        let text = answer::encode_stream_event(wire, &event).text();
        let read = answer::decode_stream_event(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        if let Some(bent) = bent::stream_event(wire, event) {
            prop_assert_eq!(read, bent, "{}", text);
        }
    }

    #[test]
    fn a_page_of_tasks_comes_back(wire in any::wire(), mut list in any::task_list()) {
        let text = answer::encode_task_list(wire, &list).text();
        let read = answer::decode_task_list(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        list.tasks = list.tasks.into_iter().map(|task| bent::task(wire, task)).collect();
        prop_assert_eq!(read, list, "{}", text);
    }

    #[test]
    fn a_webhook_comes_back(wire in any::wire(), push in any::push()) {
        let text = answer::encode_push(wire, &push).text();
        let read = answer::decode_push(wire, answer::parse(text.as_bytes()).unwrap()).unwrap();
        prop_assert_eq!(read, bent::push(wire, push), "{}", text);
    }

    #[test]
    fn a_request_comes_back_over_json_rpc(wire in any::wire(), request in any::request(), id in any::<u64>()) {
        let Ok(body) = rpc::encode(wire, &Id::from(id), &request) else { return Ok(()) };
        let read = rpc::decode_request(body.as_bytes()).unwrap();
        prop_assert_eq!(&read.id, &Id::from(id));
        // What 0.1 and 0.3 share is read as 0.3, and means the same.
        prop_assert!(read.wire == wire || (wire, read.wire) == (Wire::V01, Wire::V03));
        prop_assert_eq!(read.request, bent::request(wire, request), "{}", body);
    }

    #[test]
    fn a_request_comes_back_over_rest(wire in any::wire(), request in any::request()) {
        let Ok(RestCall { method, path, body }) = rest::encode(wire, &request) else { return Ok(()) };
        let (path, query) = path.split_once('?').unwrap_or((&path, ""));
        let read = rest::decode_request(method, path, query, body.as_deref().unwrap_or_default().as_bytes());
        let read = read.unwrap();
        prop_assert_eq!(read.wire, wire);
        prop_assert_eq!(read.request, bent::rest_request(wire, request), "{} {} {:?}", method, path, body);
    }
}
