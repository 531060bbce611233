//! Navigation: unknown paths, links, redirects and errors.

use rialto_model::{agent::AgentTrust, message::Part};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::json;

use crate::fixture::{ANN, BOB, Fixture, TestResponse};

const DESK: &str = "https://desk.example.com";

async fn fixture() -> Fixture {
    let fixture = Fixture::new(ScriptedPeer::telling(finished_with(vec![Part::text("done")]))).await;
    fixture.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    fixture
}

/// Submits a form as ann, with a referring page.
async fn send_from(fixture: &Fixture, path: &str, from: &str) -> TestResponse {
    let bearer = format!("Bearer {ANN}");
    let headers = [("accept", "text/html"), ("authorization", bearer.as_str()), ("referer", from)];
    fixture.send("POST", path, &headers, "").await
}

#[tokio::test]
async fn an_unknown_route_refers_to_the_openapi_document() {
    let fixture = fixture().await;
    for path in ["/api/v1", "/api/v1/nothing", "/api/v1/agents/desk/nothing"] {
        let missing = fixture.api(BOB, "GET", path, "").await;
        assert_eq!((missing.status, missing.header("content-type")), (404, "application/problem+json"));
        assert!(missing.json()["detail"].as_str().unwrap().contains("/api/v1/openapi.json"), "{missing:?}");
    }
    let wrong = fixture.api(BOB, "PATCH", "/api/v1/agents", "").await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, "GET, POST"));
    assert_eq!(wrong.header("content-type"), "application/problem+json");
    assert_eq!(
        wrong.json()["detail"],
        "/api/v1/agents supports GET, POST; /api/v1/openapi.json lists all routes"
    );
}

#[tokio::test]
async fn a_trailing_slash_redirects_to_the_page() {
    let fixture = fixture().await;
    for (from, to) in [
        ("/factory/", "/factory"),
        ("/factory/agents/?q=desk", "/factory/agents?q=desk"),
        ("/factory/agents/desk/", "/factory/agents/desk"),
    ] {
        let led = fixture.page(from).await;
        assert_eq!((led.status, led.header("location")), (308, to), "{from}");
    }
}

#[tokio::test]
async fn a_failed_refresh_redirects_back_with_the_query() {
    let fixture = fixture().await;
    fixture.discovery.stop(DESK);
    let list = "http://localhost/factory/agents?q=desk&done=refreshed";
    let led = send_from(&fixture, "/factory/agents/desk/refresh", list).await;
    assert_eq!((led.status, led.header("location")), (303, "/factory/agents?q=desk&done=unanswered"));
    let elsewhere = "https://evil.example.com/factoryx?q=desk";
    let led = send_from(&fixture, "/factory/agents/desk/refresh", elsewhere).await;
    assert_eq!(led.header("location"), "/factory/agents/desk?done=unanswered");
    let page = fixture.page(led.header("location")).await.body;
    assert!(page.contains("Refresh failed") && page.contains("data-region=\"error\""));
    let gone = send_from(&fixture, "/factory/agents/nobody/refresh", list).await;
    assert_eq!(gone.status, 404);
    assert!(gone.body.contains("href=\"/factory/agents?q=desk\">Back</a>"), "{gone:?}");
    assert!(gone.body.contains("href=\"/factory/agents\" data-key=\"a\" aria-current=\"page\""), "{gone:?}");
}

#[tokio::test]
async fn only_dispatched_tasks_link_to_a_routing_decision() {
    let fixture = fixture().await;
    let called = fixture.submit(ANN, "/factory/agents/desk/try/ask", "message=hello").await;
    let page = fixture.page(called.header("location")).await.body;
    assert!(page.contains("/factory/audit?task=") && !page.contains("Routing decision"), "{page}");
    let work = json!({ "requiredSkills": ["ask"], "message": "hello" }).to_string();
    let done = fixture.api(ANN, "POST", "/api/v1/dispatch", &work).await;
    assert_eq!(done.status, 200, "{done:?}");
    let choices = fixture.page("/factory/dispatches?work=").await.body;
    assert!(
        choices.contains("><bdi>ask</bdi></a>"),
        "a choice without a type is called by its skills: {choices}"
    );
    let task = fixture.api(ANN, "GET", "/api/v1/tasks?limit=1", "").await.json();
    let task = task["tasks"][0]["id"].as_str().unwrap().to_owned();
    let page = fixture.page(&format!("/factory/tasks/{task}")).await.body;
    assert!(page.contains("Routing decision"), "{page}");
    assert_eq!(fixture.page(&format!("/factory/dispatches/{task}")).await.status, 200);
}

#[tokio::test]
async fn the_next_page_of_decisions_keeps_the_type_of_work() {
    let fixture = fixture().await;
    for _ in 0..51 {
        let work = json!({ "workType": "q & a", "description": "ask", "message": "hello" }).to_string();
        assert_eq!(fixture.api(ANN, "POST", "/api/v1/dispatch", &work).await.status, 200);
    }
    let page = fixture.page("/factory/dispatches?work=q+%26+a").await.body;
    assert!(page.contains("/factory/dispatches?work=q%20%26%20a&amp;cursor="), "{page}");
    let agent = fixture.page("/factory/agents/desk").await.body;
    assert!(agent.contains("<h3><bdi>q &amp; a</bdi></h3>"), "its own work is known: {agent}");
}

#[tokio::test]
async fn an_invalid_filter_shows_its_error_in_the_list() {
    let fixture = fixture().await;
    for (path, region, why) in [
        ("/factory/tasks?agent=nobody", "data-region=\"tasks\"", "nobody"),
        ("/factory/audit?since=soon", "data-region=\"records\"", "is not a time"),
    ] {
        let page = fixture.page(path).await.body;
        let (_, within) = page.split_once(region).unwrap();
        assert!(within.contains("role=\"alert\"") && within.contains(why), "{path}: {page}");
    }
    assert!(fixture.page("/factory/tasks?open=yes").await.body.contains("No tasks match."));
    assert!(fixture.page("/factory/tasks").await.body.contains("No tasks yet"));
    assert!(fixture.page("/factory/audit").await.body.contains("No records yet"));
}

#[tokio::test]
async fn a_private_address_is_rejected_over_the_network_with_advice() {
    let fixture = fixture().await;
    let form = "kind=mcp&name=weather&url=http%3A%2F%2F127.0.0.1%3A9";
    let (url, reason) = ("mcp:weather".to_owned(), "127.0.0.1 is a loopback address".to_owned());
    fixture.discovery.fail("mcp:weather", rialto_engine::peer::DiscoveryError::Unreachable { url, reason });
    let refused = fixture.submit(ANN, "/factory/tools", form).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.body.contains("<code>rialto tools add</code>"), "{refused:?}");
    assert!(refused.body.contains("[server] allow_private_over_api"), "{refused:?}");
}

#[tokio::test]
async fn the_workflow_runner_is_not_listed_as_a_tool_server() {
    let fixture = fixture().await;
    fixture.engine.registry().deployments().ensure_flows(&Default::default()).await.unwrap();
    assert_eq!(fixture.api(ANN, "GET", "/api/v1/tools", "").await.json(), json!([]));
    let page = fixture.page("/factory").await.body;
    assert!(page.contains("with 0 tool servers"), "{page}");
    assert!(fixture.page("/factory/tools").await.body.contains("No tools yet"));
}

#[tokio::test]
async fn first_steps_list_missing_permissions_and_client_configurations() {
    let fixture = fixture().await;
    let bearer = format!("Bearer {BOB}");
    let headers = [("accept", "text/html"), ("authorization", bearer.as_str())];
    let page = fixture.send("GET", "/factory", &headers, "").await.body;
    for right in ["admin_agents", "admin_policies", "admin_tokens", "admin_audit", "approve_call"] {
        let line = format!("rialto --data /srv/rialto policy add allow-admin {right} --caller bob");
        assert!(page.contains(&line), "{line}: {page}");
    }
    assert!(page.contains("/call/desk.ask"), "a call to begin with: {page}");
    let page = fixture.page("/factory").await.body;
    assert!(!page.contains("policy add allow-admin"), "ann has every right: {page}");
    for shown in [
        "claude mcp add --transport http rialto http://localhost/mcp --header",
        "[mcp_servers.rialto]",
        "&quot;Authorization&quot;: &quot;Bearer YOUR-TOKEN&quot;",
        "&quot;servers&quot;",
        "rialto install claude-code",
    ] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let open = Fixture::open().await.page("/factory").await.body;
    assert!(!open.contains("YOUR-TOKEN") && !open.contains("RIALTO_TOKEN"), "{open}");
}

#[tokio::test]
async fn only_matching_agents_are_refreshed() {
    let fixture = fixture().await;
    for n in 0..3 {
        let url = format!("https://other{n}.example.com");
        fixture.register(&url, agents::card(&format!("Other {n}"), vec![]), AgentTrust::External).await;
    }
    fixture.discovery.stop(DESK);
    let list = fixture.page("/factory/agents?q=other").await.body;
    assert!(list.contains("Refresh 3 matching") && list.contains("aria-label=\"Select all\""), "{list}");
    assert!(fixture.page("/factory/agents").await.body.contains("Refresh all 4"));
    for (form, done) in [
        ("q=other&health=&trust=", "refreshed-all"),
        ("q=&health=&trust=external", "refreshed-all"),
        ("q=other&pick=desk", "refreshed-some"),
        ("q=nothing+like+it", "nobody"),
        ("q=&health=&trust=", "refreshed-some"),
    ] {
        let led = fixture.submit(ANN, "/factory/refresh", form).await;
        assert_eq!(led.header("location"), format!("/factory/agents?done={done}"), "{form}");
    }
}

#[tokio::test]
async fn an_unavailable_card_is_reported_with_advice() {
    let fixture = fixture().await;
    let url = "https://new.example.com";
    for (status, helps) in
        [(404, "--card-path"), (401, "rialto secrets set"), (403, "--secret"), (503, "its log")]
    {
        let error = rialto_engine::peer::DiscoveryError::Status { url: url.to_owned(), status };
        fixture.discovery.fail(url, error);
        let refused = fixture.submit(ANN, "/factory/agents", &format!("url={url}")).await;
        assert!(refused.status == 422 && refused.body.contains(helps), "{status}: {refused:?}");
    }
    let refused = fixture.submit(ANN, "/factory/agents", "url=ftp://new.example.com").await;
    assert!(refused.body.contains("is neither http nor https; use a URL like https://"), "{refused:?}");
    let limit = fixture.api(ANN, "GET", "/api/v1/agents?limit=many", "").await.json();
    assert_eq!(limit["detail"], "limit: \"many\" is not a number from 1 to 500");
}

#[tokio::test]
async fn a_file_is_downloaded_and_never_rendered() {
    let part = Part {
        content: rialto_model::message::Content::Raw("PHNjcmlwdD4".to_owned()),
        filename: Some("../evil\"; x=.html".to_owned()),
        media_type: Some("text/html".to_owned()),
        ..Part::text("")
    };
    let fixture = Fixture::new(ScriptedPeer::telling(finished_with(vec![Part::text("here"), part]))).await;
    fixture.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    let begun = fixture.submit(ANN, "/factory/agents/desk/try/ask", "message=hello").await;
    let task = begun.header("location").split('?').next().unwrap().to_owned();
    let page = fixture.wait_for(&task, "Download").await.body;
    assert!(page.contains(&format!("href=\"{task}/files/1\" download")), "{page}");
    let file = fixture.page(&format!("{task}/files/1")).await;
    assert_eq!((file.status, file.body.as_str()), (200, "<script>"));
    assert_eq!(file.header("content-type"), "application/octet-stream");
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"evil___x_.html\"");
    for path in ["0", "7", "x"] {
        assert_eq!(fixture.page(&format!("{task}/files/{path}")).await.status, 404);
    }
    let bearer = format!("Bearer {BOB}");
    let others = fixture.send("GET", &format!("{task}/files/1"), &[("authorization", &bearer)], "").await;
    assert_eq!(others.status, 404, "others' files are not one's own");
    let wrong = fixture.submit(ANN, &format!("{task}/messages"), "text=&data=%7B").await;
    assert!(wrong.status == 400 && wrong.body.contains("this is not JSON"), "{wrong:?}");
}
