//! Task notifications of 2026-07-28 over HTTP: `subscriptions/listen` with `taskIds`.
//!
//! rmcp's filter does not support tasks, so such a request is answered here, changes of the tool list included if they are requested
//! too. The state of each task is sent first, so that nothing is missed between the call and the subscription.

use axum::response::{Response, sse::KeepAlive};
use futures::{Stream, StreamExt, stream};
use rialto_engine::{TaskSubscription, visibility::VisibilityWatcher};
use rialto_http_server::event_stream;
use rialto_model::{json::Json, task::Task};
use rmcp::model::{ClientCapabilities, DetailedTask, ProtocolVersion};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    client_profile::{ClientProfile, DeclaredCapabilities, ProtocolFeatures},
    fast_path::{FastPath, codec},
    tool_result::SERVER_IDENTITY,
};

/// Maximum number of tasks in one subscription.
const MAX_TASKS: usize = 100;

/// Subscription request, as far as it is about tasks.
#[derive(Deserialize)]
pub(crate) struct ListenRequest {
    id: Json,
    method: String,
    params: ListenParams,
}

#[derive(Deserialize)]
struct ListenParams {
    notifications: ListenFilter,
    #[serde(rename = "_meta")]
    meta: ListenMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListenFilter {
    #[serde(default)]
    tools_list_changed: Option<bool>,
    task_ids: Vec<String>,
}

#[derive(Deserialize)]
struct ListenMeta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: String,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: ClientCapabilities,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", default)]
    client: Option<ListenClientInfo>,
}

#[derive(Deserialize)]
struct ListenClientInfo {
    name: String,
}

// === impl ListenRequest ===

impl ListenRequest {
    /// Parses such a request; none for any other.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let listen: Self = serde_json::from_slice(body).ok()?;
        let is_ours = listen.method == "subscriptions/listen"
            && listen.params.meta.version == ProtocolVersion::V_2026_07_28.as_str()
            && listen.params.meta.capabilities.supports_tasks();
        is_ours.then_some(listen)
    }

    pub(crate) fn client(&self) -> &str {
        self.params.meta.client.as_ref().map_or("", |client| &client.name)
    }

    pub(crate) fn abilities(&self, fluency: ProtocolFeatures) -> DeclaredCapabilities {
        DeclaredCapabilities::of(&self.params.meta.capabilities, fluency)
    }
}

// === impl FastPath ===

impl FastPath {
    /// Sends task notifications until all tasks have ended, the client disconnects, or the server stops.
    pub(crate) async fn listen(
        &self,
        client: ClientProfile,
        listen: ListenRequest,
        stop: CancellationToken,
    ) -> Response {
        let (mut ids, mut followed) = (Vec::new(), Vec::new());
        for id in listen.params.notifications.task_ids.iter().take(MAX_TASKS) {
            // Task ids of other callers are silently left out of the accepted ones.
            if let Ok((task, following)) = self.desk.engine.tasks().subscribe(&client.caller, id).await {
                ids.push(task.head.id.to_string());
                followed.push((task, following));
            }
        }
        let mut accepted = json!({ "taskIds": ids });
        let wants_tools = listen.params.notifications.tools_list_changed == Some(true);
        if wants_tools {
            accepted["toolsListChanged"] = json!(true);
        }
        let id = listen.id;
        let acknowledged =
            said(&id, "notifications/subscriptions/acknowledged", json!({ "notifications": accepted }));
        let changes = wants_tools.then(|| changed(self.desk.engine.visibility().watch(&client.caller.scope)));
        let tasks = followed
            .into_iter()
            .map(|(task, following)| self.clone().followed(client.clone(), &task, following));
        let news = stream::select_all(tasks.map(StreamExt::boxed)).map({
            let id = id.clone();
            move |task| said(&id, "notifications/tasks", serde_json::to_value(task).unwrap_or_default())
        });
        let news = match changes {
            Some(changes) => {
                let id = id.clone();
                let changes = changes.map(move |()| said(&id, "notifications/tools/list_changed", json!({})));
                stream::select(news, changes).boxed()
            }
            None => news.boxed(),
        };
        let end = stream::once(async move { ended(&id) });
        let told = stream::iter([acknowledged]).chain(news.take_until(stop.cancelled_owned())).chain(end);
        let events = told.map(|message| codec::event(message.to_string().as_bytes()));
        event_stream::respond(events, Some(KeepAlive::new()))
    }

    /// State of a task, sent again whenever it changes for its client.
    fn followed(
        self,
        client: ClientProfile,
        task: &Task,
        following: TaskSubscription,
    ) -> impl Stream<Item = DetailedTask> + Send + use<> {
        let first = self.desk.shown(&client, task);
        let is_over = task.head.state.is_terminal();
        let rest = stream::unfold((self, client, following, first.clone(), is_over), |state| async move {
            let (direct, client, mut following, mut last, is_over) = state;
            if is_over {
                return None;
            }
            loop {
                following.next().await.ok()?;
                let task =
                    direct.desk.engine.tasks().read(&client.caller, following.task().as_str()).await.ok()?;
                let shown = direct.desk.shown(&client, &task);
                if is_news(&last, &shown) {
                    last.clone_from(&shown);
                    let is_over = task.head.state.is_terminal();
                    return Some((shown, (direct, client, following, last, is_over)));
                }
            }
        });
        stream::iter([first]).chain(rest)
    }
}

/// True when more than the timestamp has changed.
fn is_news(last: &DetailedTask, shown: &DetailedTask) -> bool {
    let words = |shown: &DetailedTask| shown.task.status_message.clone();
    last.payload != shown.payload || words(last) != words(shown)
}

/// Changes of the tool list.
fn changed(lookout: VisibilityWatcher) -> impl Stream<Item = ()> + Send {
    stream::unfold(lookout, |mut lookout| async move { lookout.next().await.then_some(((), lookout)) })
}

/// Notification of this subscription.
fn said(id: &Json, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn ended(id: &Json) -> Value {
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": id, "io.modelcontextprotocol/serverInfo": SERVER_IDENTITY });
    json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete", "_meta": meta } })
}
