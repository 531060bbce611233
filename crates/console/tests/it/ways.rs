//! Ways in, on and back: addresses that lead nowhere, links, and where somebody is led after trouble.

use rialto_model::{agent::AgentTrust, message::Part};
use rialto_testkit::{
    agents,
    peer::{ScriptedPeer, finished_with},
};
use serde_json::json;

use crate::house::{ANN, Answer, BOB, House};

const DESK: &str = "https://desk.example.com";

async fn house() -> House {
    let house = House::new(ScriptedPeer::telling(finished_with(vec![Part::text("done")]))).await;
    house.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    house
}

/// Sends a form as ann, who comes from a page.
async fn send_from(house: &House, path: &str, from: &str) -> Answer {
    let bearer = format!("Bearer {ANN}");
    let headers = [("accept", "text/html"), ("authorization", bearer.as_str()), ("referer", from)];
    house.send("POST", path, &headers, "").await
}

#[tokio::test]
async fn a_route_that_is_not_there_says_where_those_are_that_are() {
    let house = house().await;
    for path in ["/api/v1", "/api/v1/nothing", "/api/v1/agents/desk/nothing"] {
        let missing = house.ask(BOB, "GET", path, "").await;
        assert_eq!((missing.status, missing.header("content-type")), (404, "application/problem+json"));
        assert!(missing.json()["detail"].as_str().unwrap().contains("/api/v1/openapi.json"), "{missing:?}");
    }
    let wrong = house.ask(BOB, "PATCH", "/api/v1/agents", "").await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, "GET, POST"));
    assert_eq!(wrong.header("content-type"), "application/problem+json");
    assert_eq!(
        wrong.json()["detail"],
        "/api/v1/agents takes GET, POST; /api/v1/openapi.json lists every route"
    );
}

#[tokio::test]
async fn a_slash_too_many_leads_to_the_page_that_is_meant() {
    let house = house().await;
    for (from, to) in [
        ("/factory/", "/factory"),
        ("/factory/agents/?q=desk", "/factory/agents?q=desk"),
        ("/factory/agents/desk/", "/factory/agents/desk"),
    ] {
        let led = house.page(from).await;
        assert_eq!((led.status, led.header("location")), (308, to), "{from}");
    }
}

#[tokio::test]
async fn a_refresh_that_fails_leads_back_with_what_was_searched_for() {
    let house = house().await;
    house.discovery.stop(DESK);
    let list = "http://localhost/factory/agents?q=desk&done=refreshed";
    let led = send_from(&house, "/factory/agents/desk/refresh", list).await;
    assert_eq!((led.status, led.header("location")), (303, "/factory/agents?q=desk&done=unanswered"));
    let elsewhere = "https://evil.example.com/factoryx?q=desk";
    let led = send_from(&house, "/factory/agents/desk/refresh", elsewhere).await;
    assert_eq!(led.header("location"), "/factory/agents/desk?done=unanswered");
    let page = house.page(led.header("location")).await.body;
    assert!(page.contains("The agent did not answer as it should") && page.contains("data-region=\"error\""));
    let gone = send_from(&house, "/factory/agents/nobody/refresh", list).await;
    assert_eq!(gone.status, 404);
    assert!(gone.body.contains("href=\"/factory/agents?q=desk\">Back</a>"), "{gone:?}");
    assert!(gone.body.contains("href=\"/factory/agents\" data-key=\"a\" aria-current=\"page\""), "{gone:?}");
}

#[tokio::test]
async fn why_this_agent_is_asked_only_of_work_that_named_nobody() {
    let house = house().await;
    let called = house.submit(ANN, "/factory/agents/desk/try/ask", "message=hello").await;
    let page = house.page(called.header("location")).await.body;
    assert!(page.contains("Its records") && !page.contains("Why this agent"), "{page}");
    let work = json!({ "requiredSkills": ["ask"], "message": "hello" }).to_string();
    let done = house.ask(ANN, "POST", "/api/v1/dispatch", &work).await;
    assert_eq!(done.status, 200, "{done:?}");
    let choices = house.page("/factory/dispatches?work=").await.body;
    assert!(
        choices.contains("><bdi>ask</bdi></a>"),
        "a choice without a type is called by its skills: {choices}"
    );
    let task = house.ask(ANN, "GET", "/api/v1/tasks?limit=1", "").await.json();
    let task = task["tasks"][0]["id"].as_str().unwrap().to_owned();
    let page = house.page(&format!("/factory/tasks/{task}")).await.body;
    assert!(page.contains("Why this agent"), "{page}");
    assert_eq!(house.page(&format!("/factory/dispatches/{task}")).await.status, 200);
}

#[tokio::test]
async fn older_choices_are_of_the_same_type_of_work() {
    let house = house().await;
    for _ in 0..51 {
        let work = json!({ "workType": "q & a", "description": "ask", "message": "hello" }).to_string();
        assert_eq!(house.ask(ANN, "POST", "/api/v1/dispatch", &work).await.status, 200);
    }
    let page = house.page("/factory/dispatches?work=q+%26+a").await.body;
    assert!(page.contains("/factory/dispatches?work=q%20%26%20a&amp;cursor="), "{page}");
    let agent = house.page("/factory/agents/desk").await.body;
    assert!(agent.contains("<h3><bdi>q &amp; a</bdi></h3>"), "its own work is known: {agent}");
}

#[tokio::test]
async fn what_is_wrong_with_a_filter_stands_where_the_list_is_shown_anew() {
    let house = house().await;
    for (path, region, why) in [
        ("/factory/tasks?agent=nobody", "data-region=\"tasks\"", "nobody"),
        ("/factory/audit?since=soon", "data-region=\"records\"", "is no time"),
    ] {
        let page = house.page(path).await.body;
        let (_, within) = page.split_once(region).unwrap();
        assert!(within.contains("role=\"alert\"") && within.contains(why), "{path}: {page}");
    }
    assert!(house.page("/factory/tasks?open=yes").await.body.contains("No task fits."));
    assert!(house.page("/factory/tasks").await.body.contains("No tasks yet"));
    assert!(house.page("/factory/audit").await.body.contains("Nothing is on record yet"));
}

#[tokio::test]
async fn a_private_address_is_not_deployed_from_afar_and_the_way_to_do_it_is_told() {
    let house = house().await;
    let form = "kind=mcp&name=weather&url=http%3A%2F%2F127.0.0.1%3A9";
    let (url, reason) = ("mcp:weather".to_owned(), "127.0.0.1 is a loopback address".to_owned());
    house.discovery.fail("mcp:weather", rialto_engine::peer::DiscoveryError::Unreachable { url, reason });
    let refused = house.submit(ANN, "/factory/tools", form).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    assert!(refused.body.contains("<code>rialto tools add</code>"), "{refused:?}");
    assert!(refused.body.contains("[server] allow_private_over_api"), "{refused:?}");
}

#[tokio::test]
async fn what_runs_workflows_is_no_tool_server() {
    let house = house().await;
    house.engine.registry().flows(&Default::default()).await.unwrap();
    assert_eq!(house.ask(ANN, "GET", "/api/v1/tools", "").await.json(), json!([]));
    let page = house.page("/factory").await.body;
    assert!(page.contains("with 0 tool servers"), "{page}");
    assert!(house.page("/factory/tools").await.body.contains("Nothing is deployed yet"));
}

#[tokio::test]
async fn first_steps_say_what_is_missing_and_what_each_client_takes() {
    let house = house().await;
    let bearer = format!("Bearer {BOB}");
    let headers = [("accept", "text/html"), ("authorization", bearer.as_str())];
    let page = house.send("GET", "/factory", &headers, "").await.body;
    for right in ["admin_agents", "admin_policies", "admin_tokens", "admin_audit", "approve_call"] {
        let line = format!("rialto --data /srv/rialto policy add allow-admin {right} --caller bob");
        assert!(page.contains(&line), "{line}: {page}");
    }
    assert!(page.contains("/call/desk.ask"), "a call to begin with: {page}");
    let page = house.page("/factory").await.body;
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
    let open = House::open().await.page("/factory").await.body;
    assert!(!open.contains("YOUR-TOKEN") && !open.contains("RIALTO_TOKEN"), "{open}");
}

#[tokio::test]
async fn what_is_searched_for_is_refreshed_and_nobody_else() {
    let house = house().await;
    for n in 0..3 {
        let url = format!("https://other{n}.example.com");
        house.register(&url, agents::card(&format!("Other {n}"), vec![]), AgentTrust::External).await;
    }
    house.discovery.stop(DESK);
    let list = house.page("/factory/agents?q=other").await.body;
    assert!(list.contains("Refresh these 3") && list.contains("aria-label=\"Pick all\""), "{list}");
    assert!(house.page("/factory/agents").await.body.contains("Refresh all 4"));
    for (form, done) in [
        ("q=other&health=&trust=", "refreshed-all"),
        ("q=&health=&trust=external", "refreshed-all"),
        ("q=other&pick=desk", "refreshed-some"),
        ("q=nothing+like+it", "nobody"),
        ("q=&health=&trust=", "refreshed-some"),
    ] {
        let led = house.submit(ANN, "/factory/refresh", form).await;
        assert_eq!(led.header("location"), format!("/factory/agents?done={done}"), "{form}");
    }
}

#[tokio::test]
async fn a_card_that_cannot_be_had_is_told_with_what_would_help() {
    let house = house().await;
    let url = "https://new.example.com";
    for (status, helps) in
        [(404, "--card-path"), (401, "rialto secrets set"), (403, "--secret"), (503, "its log")]
    {
        let error = rialto_engine::peer::DiscoveryError::Status { url: url.to_owned(), status };
        house.discovery.fail(url, error);
        let refused = house.submit(ANN, "/factory/agents", &format!("url={url}")).await;
        assert!(refused.status == 422 && refused.body.contains(helps), "{status}: {refused:?}");
    }
    let refused = house.submit(ANN, "/factory/agents", "url=ftp://new.example.com").await;
    assert!(refused.body.contains("is neither http nor https; write it like https://"), "{refused:?}");
    let limit = house.ask(ANN, "GET", "/api/v1/agents?limit=many", "").await.json();
    assert_eq!(limit["detail"], "limit: \"many\" is no number; write one from 1 to 500");
}

#[tokio::test]
async fn a_file_is_kept_and_never_shown_whatever_it_says_it_is() {
    let part = Part {
        content: rialto_model::message::Content::Raw("PHNjcmlwdD4".to_owned()),
        filename: Some("../evil\"; x=.html".to_owned()),
        media_type: Some("text/html".to_owned()),
        ..Part::text("")
    };
    let house = House::new(ScriptedPeer::telling(finished_with(vec![Part::text("here"), part]))).await;
    house.register(DESK, agents::card("Desk", vec![agents::skill("ask")]), AgentTrust::Trusted).await;
    let begun = house.submit(ANN, "/factory/agents/desk/try/ask", "message=hello").await;
    let task = begun.header("location").split('?').next().unwrap().to_owned();
    let page = house.until(&task, "Download").await.body;
    assert!(page.contains(&format!("href=\"{task}/files/1\" download")), "{page}");
    let file = house.page(&format!("{task}/files/1")).await;
    assert_eq!((file.status, file.body.as_str()), (200, "<script>"));
    assert_eq!(file.header("content-type"), "application/octet-stream");
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"evil___x_.html\"");
    for path in ["0", "7", "x"] {
        assert_eq!(house.page(&format!("{task}/files/{path}")).await.status, 404);
    }
    let bearer = format!("Bearer {BOB}");
    let others = house.send("GET", &format!("{task}/files/1"), &[("authorization", &bearer)], "").await;
    assert_eq!(others.status, 404, "others' files are not one's own");
    let wrong = house.submit(ANN, &format!("{task}/messages"), "text=&data=%7B").await;
    assert!(wrong.status == 400 && wrong.body.contains("this is not JSON"), "{wrong:?}");
}
