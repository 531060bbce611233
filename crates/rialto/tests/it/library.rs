//! The bridge as a library: a tool from a row, a card and a skill, without a network.

use std::sync::Arc;

use http::StatusCode;
use rialto_a2a_client::tool::{SkillTool, SkillToolDeps};
use rialto_engine::RecordingHook;
use rialto_http_client::fetch::{FetchError, FetchRequest, FetchResponse};
use rialto_model::json::Json;
use rialto_policy::Policy;
use rialto_testkit::{agents, null_store::NullStore};
use serde_json::json;

const REVIEWED: &str = r#"{"jsonrpc":"2.0","id":null,"result":{"kind":"task","id":"t","contextId":"c",
    "status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"data","data":{"ok":true}}]}]}}"#;

#[tokio::test]
async fn a_tool_can_be_built_and_called_in_anybody_s_test() {
    let skill = agents::skill("review");
    let agent = agents::agent("code-reviewer", vec![skill.clone()]);
    let card = agents::card("code-reviewer", vec![skill.clone()]);
    let fetcher =
        Arc::new(|_: FetchRequest| Ok::<_, FetchError>(FetchResponse::fixed(StatusCode::OK, REVIEWED)));
    let store = Arc::new(NullStore::default());
    let deps = SkillToolDeps { fetch: fetcher, policy: Policy::starter().unwrap(), store };
    let tool = SkillTool::new(agent, card, skill, deps);
    let heard = RecordingHook::default();
    tool.audit().subscribe(Arc::new(heard.clone()));

    let task = tool.call(Json::from(json!({ "prUrl": "https://example.com/pr/1" }))).await.unwrap();

    assert_eq!(task.artifacts.len(), 1);
    assert_eq!(heard.events().len(), 2);
    assert_eq!(heard.events()[1].verb.verb, "code_reviewer.review");
    assert_eq!(heard.events()[1].verb.args.value(), json!({ "prUrl": "https://example.com/pr/1" }));
}
