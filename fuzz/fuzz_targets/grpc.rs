//! Bytes as the message of any method, as a request and as an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rialto_a2a_codec::{answer, grpc, request::A2aOperation, wire::Wire};

/// The methods of both packages. What one of them lacks is refused.
const METHODS: [&str; 14] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "TaskSubscription",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
    "GetAgentCard",
];

fuzz_target!(|data: &[u8]| {
    let Some((&which, message)) = data.split_first() else { return };
    let operation = A2aOperation::ALL[usize::from(which >> 1) % A2aOperation::ALL.len()];
    let wire = if which & 1 == 0 { Wire::V10 } else { Wire::V03Proto };
    if let Ok(text) = grpc::answer_text(wire, operation, message) {
        // What was read is JSON, and can be written again unless it has values that only JSON can say.
        answer::parse(text.as_bytes()).expect("JSON");
        let _ = grpc::encode_answer(wire, operation, &text);
    }
    for service in ["lf.a2a.v1.A2AService", "a2a.v1.A2AService"] {
        for method in METHODS {
            if let Ok(incoming) = grpc::decode_request(&format!("/{service}/{method}"), message) {
                let _ = grpc::encode(incoming.wire, &incoming.request);
            }
        }
    }
});
