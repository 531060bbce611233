//! A skill as a library function, without a network.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use rialto_a2a_client::tool::{SkillTool, SkillToolDeps};
use rialto_engine::RecordingHook;
use rialto_http_client::fetch::{Fetch, FetchError, FetchRequest, FetchResponse};
use rialto_model::{
    agent::{Agent, AgentTrust},
    audit_event::{AuditEvent, AuditPhase, InvocationOutcome},
    failure::FailureKind,
    json::Json,
    message::Content,
    task::TaskState,
};
use rialto_policy::Policy;
use rialto_testkit::null_store::NullStore;
use serde_json::json;

use crate::rows::row;

const DONE: &str = r#"{"jsonrpc":"2.0","id":null,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":
    "completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"data","data":{"sky":"clear"}}]}]}}"#;

/// A tool whose agent answers with `body`, and what it was sent.
fn tool(trust: AgentTrust, status: StatusCode, body: &'static str) -> (SkillTool, Arc<Mutex<Vec<String>>>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&sent);
    let fetch: Arc<dyn Fetch> = Arc::new(move |request: FetchRequest| {
        heard.lock().unwrap().push(String::from_utf8(request.body.to_vec()).unwrap());
        Ok::<_, FetchError>(FetchResponse::fixed(status, body))
    });
    let agent = Agent { trust, ..row("https://weather.example", Vec::new(), false) };
    let (card, skill) = ((*agent.card).clone(), (*agent.card.skills[0]).clone());
    (
        SkillTool::new(
            agent,
            card,
            skill,
            SkillToolDeps {
                fetch,
                policy: Policy::starter().unwrap(),
                store: Arc::new(NullStore::default()),
            },
        ),
        sent,
    )
}

fn venice() -> Json {
    Json::from(json!({ "city": "Venice" }))
}

#[tokio::test]
async fn a_skill_is_called_without_a_network_and_the_bus_hears_of_it() {
    let (tool, sent) = tool(AgentTrust::Trusted, StatusCode::OK, DONE);
    let heard = RecordingHook::default();
    tool.audit().subscribe(Arc::new(heard.clone()));
    let task = tool.call(venice()).await.unwrap();
    assert_eq!(task.head.state, TaskState::Completed);
    let Content::Data(data) = &task.artifacts[0].parts[0].content else { panic!("{task:?}") };
    assert_eq!(data.get(), r#"{"sky":"clear"}"#);
    assert_eq!(sent.lock().unwrap().len(), 1);
    let phases: Vec<_> = heard.events().iter().map(|event| (event.phase, event.outcome)).collect();
    assert_eq!(
        phases,
        [(AuditPhase::PreVerb, None), (AuditPhase::PostVerb, Some(InvocationOutcome::Completed))]
    );
    assert_eq!(heard.events()[0].verb.verb, "weather.forecast");
}

#[tokio::test]
async fn a_tool_knows_both_its_names() {
    let (tool, _) = tool(AgentTrust::Trusted, StatusCode::OK, DONE);
    assert_eq!(
        (tool.name().as_str(), tool.legacy_alias().as_str()),
        ("weather.forecast", "a2a_weather_forecast")
    );
}

#[tokio::test]
async fn a_tool_that_policy_does_not_permit_sends_nothing() {
    let (tool, sent) = tool(AgentTrust::External, StatusCode::OK, DONE);
    assert_eq!(tool.call(venice()).await.unwrap_err().kind, FailureKind::Denied);
    assert!(sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_subscriber_can_refuse_a_call() {
    let (tool, sent) = tool(AgentTrust::Trusted, StatusCode::OK, DONE);
    tool.audit().subscribe(Arc::new(|event: &mut AuditEvent| event.context.deny("not today")));
    assert_eq!(tool.call(venice()).await.unwrap_err().message, "not today");
    assert!(sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn each_kind_of_trouble_has_its_code() {
    for (status, body, code) in [
        (StatusCode::BAD_GATEWAY, "", -32202),
        (StatusCode::OK, "nonsense", -32203),
        (StatusCode::OK, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#, -32204),
    ] {
        let (tool, _) = tool(AgentTrust::Trusted, status, body);
        let failure = tool.call(venice()).await.unwrap_err();
        assert_eq!(failure.kind.rpc_code(), code, "{failure:?}");
    }
}
