//! Arbitrary values, for properties.

use base64::{Engine, engine::general_purpose::STANDARD};
use proptest::{collection::vec, option, prelude::*};
use rialto_model::{
    json::{Extra, Json},
    message::{Artifact, Content, Message, Part, Role},
};

use crate::{
    request::{
        A2aRequest, Configuration, ExtendedCard, GetTask, ListTasks, PushAuthentication, PushConfig,
        PushListing, PushRef, SendRequest, TaskRef,
    },
    task::{A2aState, A2aStatus, A2aTask, ArtifactUpdate, StatusUpdate, StreamEvent, TaskList},
    wire::Wire,
};

pub(super) fn wire() -> impl Strategy<Value = Wire> {
    proptest::sample::select(Wire::ALL.to_vec())
}

pub(super) fn id() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9:/_ %ü-]{1,12}"
}

fn maybe_id() -> impl Strategy<Value = Option<String>> {
    option::of(id())
}

fn ids() -> impl Strategy<Value = Vec<String>> {
    vec(id(), 0..3)
}

/// Any JSON value, numbers that no float can hold among them.
pub(super) fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("12345678901234567890.10".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|list| format!("[{}]", list.join(","))),
            vec(inner, 0..3).prop_map(|list| object_text(&list)),
        ]
    });
    tree.prop_map(|text| Json::parse(text).unwrap())
}

fn object_text(values: &[String]) -> String {
    let members: Vec<String> =
        values.iter().enumerate().map(|(at, value)| format!("\"m{at}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn object() -> impl Strategy<Value = Json> {
    vec(json(), 0..3).prop_map(|values| {
        let values: Vec<String> = values.iter().map(|value| value.get().to_owned()).collect();
        Json::parse(object_text(&values)).unwrap()
    })
}

fn metadata() -> impl Strategy<Value = Option<Json>> {
    option::of(object())
}

fn extra() -> impl Strategy<Value = Extra> {
    vec(json(), 0..2).prop_map(|values| {
        values.into_iter().enumerate().map(|(at, value)| (format!("x-{at}"), value)).collect()
    })
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        any::<String>().prop_map(Content::Text),
        json().prop_map(Content::Data),
        vec(any::<u8>(), 0..20).prop_map(|bytes| Content::Raw(STANDARD.encode(bytes))),
        id().prop_map(|id| Content::Url(format!("https://files.example/{id}"))),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let known = (content(), maybe_id(), option::of(Just("image/png".to_owned())), metadata(), extra())
        .prop_map(|(content, filename, media_type, metadata, extra)| Part {
            content,
            filename,
            media_type,
            metadata,
            extra,
        });
    let unknown = json().prop_map(|json| {
        Part::new(Content::Unknown(Json::encode(&serde_json::json!({"kind": "hologram", "light": json}))))
    });
    prop_oneof![9 => known, 1 => unknown]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    vec(part(), 0..3)
}

pub(super) fn message() -> impl Strategy<Value = Message> {
    let role = proptest::sample::select(vec![Role::User, Role::Agent, Role::Unspecified]);
    (id(), role, parts(), maybe_id(), maybe_id(), metadata(), ids(), ids(), extra()).prop_map(
        |(id, role, parts, context_id, task_id, metadata, extensions, reference_task_ids, extra)| Message {
            id,
            role,
            parts,
            context_id,
            task_id,
            metadata,
            extensions,
            reference_task_ids,
            extra,
        },
    )
}

fn artifact() -> impl Strategy<Value = Artifact> {
    (id(), maybe_id(), maybe_id(), parts(), metadata(), ids(), extra()).prop_map(
        |(id, name, description, parts, metadata, extensions, extra)| Artifact {
            id,
            name,
            description,
            parts,
            metadata,
            extensions,
            extra,
        },
    )
}

fn status() -> impl Strategy<Value = A2aStatus> {
    let state = proptest::sample::select(A2aState::ALL.to_vec());
    (state, option::of(message()), option::of(Just("2026-01-02T03:04:05".to_owned())), extra())
        .prop_map(|(state, message, timestamp, extra)| A2aStatus { state, message, timestamp, extra })
}

pub(super) fn task() -> impl Strategy<Value = A2aTask> {
    (id(), maybe_id(), status(), vec(artifact(), 0..3), vec(message(), 0..2), metadata(), extra()).prop_map(
        |(id, context_id, status, artifacts, history, metadata, extra)| A2aTask {
            id,
            context_id,
            status,
            artifacts,
            history,
            metadata,
            extra,
        },
    )
}

pub(super) fn stream_event() -> impl Strategy<Value = StreamEvent> {
    let status = (id(), maybe_id(), status(), any::<bool>(), metadata(), extra()).prop_map(
        |(task_id, context_id, status, is_final, metadata, extra)| {
            StreamEvent::Status(StatusUpdate { task_id, context_id, status, is_final, metadata, extra })
        },
    );
    let artifact = (id(), maybe_id(), artifact(), any::<bool>(), any::<bool>(), metadata(), extra())
        .prop_map(|(task_id, context_id, artifact, append, last_chunk, metadata, extra)| {
            StreamEvent::Artifact(ArtifactUpdate {
                task_id,
                context_id,
                artifact,
                append,
                last_chunk,
                metadata,
                extra,
            })
        });
    prop_oneof![
        task().prop_map(StreamEvent::Task),
        message().prop_map(StreamEvent::Message),
        status,
        artifact,
    ]
}

pub(super) fn task_list() -> impl Strategy<Value = TaskList> {
    (vec(task(), 0..2), id(), 0..100_u32, 0..1000_u32, extra()).prop_map(
        |(tasks, next_page_token, page_size, total_size, extra)| TaskList {
            tasks,
            next_page_token,
            page_size,
            total_size,
            extra,
        },
    )
}

pub(super) fn push() -> impl Strategy<Value = PushConfig> {
    let authentication = (ids(), maybe_id(), extra())
        .prop_map(|(schemes, credentials, extra)| PushAuthentication { schemes, credentials, extra });
    (maybe_id(), id(), maybe_id(), id(), maybe_id(), option::of(authentication), extra()).prop_map(
        |(tenant, task_id, id, url, token, authentication, extra)| PushConfig {
            tenant,
            task_id: Some(task_id.replace('/', "-")),
            id,
            url,
            token,
            authentication,
            extra,
        },
    )
}

fn configuration() -> impl Strategy<Value = Configuration> {
    (ids(), option::of(push()), option::of(0..5_u32), any::<bool>(), extra()).prop_map(
        |(accepted_output_modes, push, history_length, return_immediately, extra)| Configuration {
            accepted_output_modes,
            push,
            history_length,
            return_immediately,
            extra,
        },
    )
}

fn send() -> impl Strategy<Value = SendRequest> {
    (message(), configuration(), metadata(), maybe_id(), maybe_id(), extra()).prop_map(
        |(message, configuration, metadata, tenant, task_id, extra)| SendRequest {
            message,
            configuration,
            metadata,
            tenant,
            skill: None,
            correlation_id: None,
            task_id,
            extra,
        },
    )
}

fn task_ref() -> impl Strategy<Value = TaskRef> {
    (id(), maybe_id(), metadata(), extra()).prop_map(|(id, tenant, metadata, extra)| TaskRef {
        id,
        tenant,
        metadata,
        extra,
    })
}

fn push_ref() -> impl Strategy<Value = PushRef> {
    (maybe_id(), id(), id(), extra()).prop_map(|(tenant, task_id, id, extra)| PushRef {
        tenant,
        task_id,
        id: Some(id),
        extra,
    })
}

fn list() -> impl Strategy<Value = ListTasks> {
    let state = proptest::sample::select(A2aState::ALL.to_vec());
    let filters = (maybe_id(), maybe_id(), option::of(state), maybe_id());
    let sizes = (option::of(0..100_u32), option::of(0..9_u32), option::of(any::<bool>()));
    (filters, sizes, maybe_id(), extra()).prop_map(
        |(
            (tenant, context_id, status, after),
            (page_size, history_length, include_artifacts),
            page_token,
            extra,
        )| {
            ListTasks {
                tenant,
                context_id,
                status,
                page_size,
                page_token,
                history_length,
                status_timestamp_after: after,
                include_artifacts,
                extra,
            }
        },
    )
}

pub(super) fn request() -> impl Strategy<Value = A2aRequest> {
    let get = (id(), option::of(0..9_u32), maybe_id(), metadata(), extra()).prop_map(
        |(id, history_length, tenant, metadata, extra)| {
            A2aRequest::Get(GetTask { id, history_length, tenant, metadata, extra })
        },
    );
    let listing = (maybe_id(), id(), option::of(0..9_u32), maybe_id(), extra()).prop_map(
        |(tenant, task_id, page_size, page_token, extra)| {
            A2aRequest::PushList(PushListing { tenant, task_id, page_size, page_token, extra })
        },
    );
    let card = (maybe_id(), extra())
        .prop_map(|(tenant, extra)| A2aRequest::ExtendedCard(ExtendedCard { tenant, extra }));
    prop_oneof![
        3 => send().prop_map(A2aRequest::Send),
        1 => send().prop_map(A2aRequest::Stream),
        1 => get,
        1 => list().prop_map(A2aRequest::List),
        1 => task_ref().prop_map(A2aRequest::Cancel),
        1 => task_ref().prop_map(A2aRequest::Subscribe),
        1 => push().prop_map(A2aRequest::PushCreate),
        1 => push_ref().prop_map(A2aRequest::PushGet),
        1 => listing,
        1 => push_ref().prop_map(A2aRequest::PushDelete),
        1 => card,
    ]
}
