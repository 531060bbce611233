//! One request of each kind on each wire, as it leaves us.

use rialto_model::{
    json::Json,
    message::{Content, Message, Part, Role},
};

use crate::{
    request::{
        A2aRequest, ExtendedCard, GetTask, ListTasks, PushAuthentication, PushConfig, PushListing, PushRef,
        SendRequest, TaskRef,
    },
    rest,
    rpc::{self, Id},
    task::A2aState,
    wire::Wire,
};

fn push() -> PushConfig {
    PushConfig {
        task_id: Some("t/1".to_owned()),
        id: Some("p".to_owned()),
        url: "https://hook.example".to_owned(),
        token: Some("secret".to_owned()),
        authentication: Some(PushAuthentication {
            schemes: vec!["Bearer".to_owned()],
            credentials: Some("c".to_owned()),
            ..PushAuthentication::default()
        }),
        ..PushConfig::default()
    }
}

fn send() -> SendRequest {
    let mut file = Part::new(Content::Raw("aGk=".to_owned()));
    file.filename = Some("hi.txt".to_owned());
    let parts = vec![Part::text("hi"), Part::data(Json::parse(r#"{"n":1.0}"#).unwrap()), file];
    let mut message = Message::new("m", Role::User, parts);
    message.context_id = Some("c".to_owned());
    message.metadata = Some(Json::parse(r#"{"k":"v"}"#).unwrap());
    let mut send = SendRequest::new(message);
    send.configuration.accepted_output_modes = vec!["text/plain".to_owned()];
    send.configuration.history_length = Some(3);
    send.configuration.push = Some(PushConfig { task_id: None, ..push() });
    send.task_id = Some("s".to_owned());
    send
}

pub(super) fn requests() -> Vec<A2aRequest> {
    let id = || "t/1".to_owned();
    let tenant = || Some("acme".to_owned());
    let push_ref =
        || PushRef { task_id: id(), id: Some("p".to_owned()), tenant: tenant(), ..PushRef::default() };
    vec![
        A2aRequest::Send(send()),
        A2aRequest::Stream(SendRequest::new(Message::new("m", Role::User, vec![Part::text("hi")]))),
        A2aRequest::Get(GetTask { id: id(), history_length: Some(2), ..GetTask::default() }),
        A2aRequest::List(ListTasks {
            status: Some(A2aState::Canceled),
            page_size: Some(10),
            context_id: Some("a b".to_owned()),
            ..ListTasks::default()
        }),
        A2aRequest::Cancel(TaskRef { id: id(), tenant: tenant(), ..TaskRef::default() }),
        A2aRequest::Subscribe(TaskRef { id: id(), ..TaskRef::default() }),
        A2aRequest::PushCreate(push()),
        A2aRequest::PushGet(push_ref()),
        A2aRequest::PushList(PushListing { task_id: id(), ..PushListing::default() }),
        A2aRequest::PushDelete(push_ref()),
        A2aRequest::ExtendedCard(ExtendedCard::default()),
    ]
}

fn over_rpc(wire: Wire) -> String {
    let bodies = requests().into_iter().map(|request| match rpc::encode(wire, &Id::from(1), &request) {
        Ok(body) => body.replace(r#""jsonrpc":"2.0","id":1,"#, ""),
        Err(error) => error.to_string(),
    });
    bodies.collect::<Vec<_>>().join("\n")
}

fn over_rest(wire: Wire) -> String {
    let calls = requests().into_iter().map(|request| {
        let call = rest::encode(wire, &request).unwrap();
        format!("{} {} {}", call.method, call.path, call.body.as_deref().unwrap_or("-"))
    });
    calls.collect::<Vec<_>>().join("\n")
}

#[test]
fn requests_of_1_0_over_json_rpc() {
    insta::assert_snapshot!(over_rpc(Wire::V10), @r#"
    {"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"},{"data":{"n":1.0}},{"raw":"aGk=","filename":"hi.txt"}],"contextId":"c","metadata":{"k":"v"}},"configuration":{"acceptedOutputModes":["text/plain"],"taskPushNotificationConfig":{"id":"p","url":"https://hook.example","token":"secret","authentication":{"scheme":"Bearer","credentials":"c"}},"historyLength":3}}}
    {"method":"SendStreamingMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}}
    {"method":"GetTask","params":{"id":"t/1","historyLength":2}}
    {"method":"ListTasks","params":{"contextId":"a b","status":"TASK_STATE_CANCELED","pageSize":10}}
    {"method":"CancelTask","params":{"tenant":"acme","id":"t/1"}}
    {"method":"SubscribeToTask","params":{"id":"t/1"}}
    {"method":"CreateTaskPushNotificationConfig","params":{"taskId":"t/1","id":"p","url":"https://hook.example","token":"secret","authentication":{"scheme":"Bearer","credentials":"c"}}}
    {"method":"GetTaskPushNotificationConfig","params":{"tenant":"acme","taskId":"t/1","id":"p"}}
    {"method":"ListTaskPushNotificationConfigs","params":{"taskId":"t/1"}}
    {"method":"DeleteTaskPushNotificationConfig","params":{"tenant":"acme","taskId":"t/1","id":"p"}}
    {"method":"GetExtendedAgentCard","params":{}}
    "#);
}

#[test]
fn requests_of_0_3_over_json_rpc() {
    insta::assert_snapshot!(over_rpc(Wire::V03), @r#"
    {"method":"message/send","params":{"message":{"messageId":"m","role":"user","kind":"message","parts":[{"kind":"text","text":"hi"},{"kind":"data","data":{"n":1.0}},{"kind":"file","file":{"bytes":"aGk=","name":"hi.txt"}}],"contextId":"c","metadata":{"k":"v"}},"configuration":{"acceptedOutputModes":["text/plain"],"pushNotificationConfig":{"id":"p","url":"https://hook.example","token":"secret","authentication":{"schemes":["Bearer"],"credentials":"c"}},"historyLength":3,"blocking":true},"taskId":"s"}}
    {"method":"message/stream","params":{"message":{"messageId":"m","role":"user","kind":"message","parts":[{"kind":"text","text":"hi"}]}}}
    {"method":"tasks/get","params":{"id":"t/1","historyLength":2}}
    listing tasks is not part of A2A 0.3
    {"method":"tasks/cancel","params":{"id":"t/1"}}
    {"method":"tasks/resubscribe","params":{"id":"t/1"}}
    {"method":"tasks/pushNotificationConfig/set","params":{"taskId":"t/1","pushNotificationConfig":{"id":"p","url":"https://hook.example","token":"secret","authentication":{"schemes":["Bearer"],"credentials":"c"}}}}
    {"method":"tasks/pushNotificationConfig/get","params":{"id":"t/1","pushNotificationConfigId":"p"}}
    {"method":"tasks/pushNotificationConfig/list","params":{"id":"t/1"}}
    {"method":"tasks/pushNotificationConfig/delete","params":{"id":"t/1","pushNotificationConfigId":"p"}}
    {"method":"agent/getAuthenticatedExtendedCard","params":{}}
    "#);
}

#[test]
fn requests_of_0_1_over_json_rpc() {
    insta::assert_snapshot!(over_rpc(Wire::V01), @r#"
    {"method":"tasks/send","params":{"id":"s","sessionId":"c","message":{"role":"user","parts":[{"type":"text","text":"hi"},{"type":"data","data":{"n":1.0}},{"type":"file","file":{"bytes":"aGk=","name":"hi.txt"}}],"metadata":{"k":"v"}},"acceptedOutputModes":["text/plain"],"pushNotification":{"url":"https://hook.example","token":"secret","authentication":{"schemes":["Bearer"],"credentials":"c"}},"historyLength":3}}
    {"method":"tasks/sendSubscribe","params":{"id":"m","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}}
    {"method":"tasks/get","params":{"id":"t/1","historyLength":2}}
    listing tasks is not part of A2A 0.1
    {"method":"tasks/cancel","params":{"id":"t/1"}}
    {"method":"tasks/resubscribe","params":{"id":"t/1"}}
    {"method":"tasks/pushNotification/set","params":{"id":"t/1","pushNotificationConfig":{"url":"https://hook.example","token":"secret","authentication":{"schemes":["Bearer"],"credentials":"c"}}}}
    {"method":"tasks/pushNotification/get","params":{"id":"t/1"}}
    listing push notification configs is not part of A2A 0.1
    deleting a push notification config is not part of A2A 0.1
    reading the extended card is not part of A2A 0.1
    "#);
}

#[test]
fn requests_of_1_0_over_rest() {
    insta::assert_snapshot!(over_rest(Wire::V10), @r#"
    POST /message:send {"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"},{"data":{"n":1.0}},{"raw":"aGk=","filename":"hi.txt"}],"contextId":"c","metadata":{"k":"v"}},"configuration":{"acceptedOutputModes":["text/plain"],"taskPushNotificationConfig":{"id":"p","url":"https://hook.example","token":"secret","authentication":{"scheme":"Bearer","credentials":"c"}},"historyLength":3}}
    POST /message:stream {"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}
    GET /tasks/t%2F1?historyLength=2 -
    GET /tasks?contextId=a+b&status=TASK_STATE_CANCELED&pageSize=10 -
    POST /acme/tasks/t%2F1:cancel {}
    GET /tasks/t%2F1:subscribe -
    POST /tasks/t%2F1/pushNotificationConfigs {"taskId":"t/1","id":"p","url":"https://hook.example","token":"secret","authentication":{"scheme":"Bearer","credentials":"c"}}
    GET /acme/tasks/t%2F1/pushNotificationConfigs/p -
    GET /tasks/t%2F1/pushNotificationConfigs -
    DELETE /acme/tasks/t%2F1/pushNotificationConfigs/p -
    GET /extendedAgentCard -
    "#);
}

#[test]
fn requests_of_0_3_over_rest() {
    insta::assert_snapshot!(over_rest(Wire::V03Proto), @r#"
    POST /v1/message:send {"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hi"},{"data":{"data":{"n":1.0}}},{"file":{"fileWithBytes":"YUdrPQ==","name":"hi.txt"}}],"contextId":"c","metadata":{"k":"v"}},"configuration":{"acceptedOutputModes":["text/plain"],"pushNotification":{"id":"p","url":"https://hook.example","token":"secret","authentication":{"schemes":["Bearer"],"credentials":"c"}},"historyLength":3,"blocking":true}}
    POST /v1/message:stream {"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hi"}]},"configuration":{"blocking":true}}
    GET /v1/tasks/t%2F1?historyLength=2 -
    GET /v1/tasks?contextId=a+b&status=TASK_STATE_CANCELLED&pageSize=10 -
    POST /v1/tasks/t%2F1:cancel {}
    GET /v1/tasks/t%2F1:subscribe -
    POST /v1/tasks/t%2F1/pushNotificationConfigs {"parent":"tasks/t/1","configId":"p","config":{"name":"tasks/t/1/pushNotificationConfigs/p","pushNotificationConfig":{"id":"p","url":"https://hook.example","token":"secret","authentication":{"schemes":["Bearer"],"credentials":"c"}}}}
    GET /v1/tasks/t%2F1/pushNotificationConfigs/p -
    GET /v1/tasks/t%2F1/pushNotificationConfigs -
    DELETE /v1/tasks/t%2F1/pushNotificationConfigs/p -
    GET /v1/card -
    "#);
}
