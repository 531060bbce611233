//! Guardrails at every door: what each action does, which way, in an answer and in a stream; and that what is blocked is nowhere.

use rialto_a2a_wire::wire::Wire;
use serde_json::{Value, json};

use crate::harness::{
    agent::{DIGITS, SampleAgent},
    grpc, http,
    rialto::Rialto,
    server::{Server, message},
    stdio::Stdio,
    until,
};

/// What is looked for in what is said, and in what is answered.
const INSIDE: &str = "inmark4711";
const OUTSIDE: &str = "outmark4711";

/// One guardrail for each action, each on an agent that is called like it.
const ACTIONS: [&str; 4] = ["block", "redact", "warn", "log"];

fn setting() -> String {
    let guardrail = |action: &str| {
        format!(
            "[guardrails.skills.\"{action}.*\"]\naction = \"{action}\"\n\
             [[guardrails.skills.\"{action}.*\".checks]]\ntype = \"regex\"\ntarget = \"input\"\n\
             config.patterns = [{{ name = \"mark\", pattern = 'inmark\\d+' }}]\n\
             [[guardrails.skills.\"{action}.*\".checks]]\ntype = \"regex\"\ntarget = \"output\"\n\
             config.patterns = [{{ name = \"mark\", pattern = 'outmark\\d+|12345678901234567890' }}]\n"
        )
    };
    ACTIONS.map(guardrail).concat()
}

/// Where something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Stdio,
    McpHttp,
    JsonRpc,
    JsonRpcStream,
    JsonRpcOld,
    Rest,
    RestStream,
    Grpc,
    GrpcStream,
    Plain,
    Dispatch,
}

const DOORS: [Door; 11] = [
    Door::Stdio,
    Door::McpHttp,
    Door::JsonRpc,
    Door::JsonRpcStream,
    Door::JsonRpcOld,
    Door::Rest,
    Door::RestStream,
    Door::Grpc,
    Door::GrpcStream,
    Door::Plain,
    Door::Dispatch,
];

/// What came back.
#[derive(Debug)]
struct Told {
    /// The HTTP status, or gRPC's.
    status: u16,
    /// The JSON-RPC error's code, if there is one.
    code: Option<i64>,
    warning: Option<String>,
    body: String,
}

/// A server and an MCP server on the same data, with an agent for each action.
struct House {
    rialto: Rialto,
    agents: Vec<SampleAgent>,
    server: Server,
    stdio: Stdio,
    said: usize,
}

// === impl House ===

impl House {
    fn open() -> Self {
        let rialto = Rialto::fresh().with("RIALTO_LOG", "trace");
        std::fs::write(rialto.folder().join("rialto.toml"), setting()).unwrap();
        let agents: Vec<SampleAgent> = ACTIONS.map(SampleAgent::named).into();
        for (agent, action) in agents.iter().zip(ACTIONS) {
            agent.learn("digits");
            agent.change_card(|card| {
                for skill in card["skills"].as_array_mut().unwrap() {
                    skill["tags"] = json!([format!("{action}-{}", skill["id"].as_str().unwrap())]);
                }
            });
            rialto.trust(&agent.url);
        }
        let server = rialto.serve(&[]);
        let mut stdio = rialto.mcp(&[]);
        stdio.initialize();
        Self { rialto, agents, server, stdio, said: 0 }
    }

    fn heard(&self, action: &str) -> Vec<String> {
        self.agents[ACTIONS.iter().position(|known| *known == action).unwrap()].heard()
    }

    fn post(&self, path: &str, body: &Value) -> Told {
        let bearer = format!("Bearer {}", self.server.token.as_deref().unwrap());
        let url = format!("{}{path}", self.server.url);
        let answer = http::post(&url, &[("Authorization", &bearer)], &body.to_string());
        Told::of(&answer)
    }

    /// Says something to a skill of the agent for an action.
    fn say(&mut self, door: Door, action: &str, skill: &str, text: &str) -> Told {
        self.said += 1;
        let (name, args) = (format!("{action}.{skill}"), json!({ "note": format!("it is {text}.") }));
        let message = json!({ "messageId": format!("m-{}", self.said), "role": "ROLE_USER", "parts": [{ "data": args }] });
        let params = json!({ "message": message, "metadata": { "skillId": name } });
        let rpc = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        match door {
            Door::Stdio => {
                let answer = self.stdio.ask("tools/call", &json!({ "name": name, "arguments": args }));
                let code = answer["error"]["code"].as_i64();
                let warning = answer["result"]["_meta"]["rialto/guardrail"].is_object().then(String::new);
                Told { status: 0, code, warning, body: answer.to_string() }
            }
            Door::McpHttp => {
                let params = json!({ "name": name, "arguments": args });
                let answer = self.server.request("/mcp", "tools/call", params, self.server.token.as_deref());
                let code = message_of(&answer)["error"]["code"].as_i64();
                Told { code, ..Told::of(&answer) }
            }
            Door::JsonRpc => self.post("/a2a", &rpc("SendMessage")),
            Door::JsonRpcStream => self.post("/a2a", &rpc("SendStreamingMessage")),
            Door::JsonRpcOld => {
                let part = json!({ "kind": "data", "data": args });
                let id = format!("o-{}", self.said);
                let message = json!({ "kind": "message", "messageId": id, "role": "user", "parts": [part] });
                let params = json!({ "message": message, "metadata": { "skillId": name } });
                let rpc = json!({ "jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params });
                self.post("/a2a", &rpc)
            }
            Door::Rest => self.post("/a2a/message:send", &params),
            Door::RestStream => self.post("/a2a/message:stream", &params),
            Door::Grpc | Door::GrpcStream => {
                let method = if door == Door::Grpc { "SendMessage" } else { "SendStreamingMessage" };
                let told = grpc::call(&self.server, Wire::V10, method, &params);
                let status = told.status.as_ref().map_or(99, |status| status.number);
                let said = told.status.as_ref().map(|status| status.message.clone()).unwrap_or_default();
                let body = format!("{:?} {said}", told.messages);
                Told { status: u16::try_from(status).unwrap(), code: None, warning: told.warning, body }
            }
            Door::Plain => self.post(&format!("/call/{name}"), &args),
            Door::Dispatch => {
                let tag = format!("{action}-{skill}");
                let work = json!({ "workType": tag, "requiredSkills": [tag], "message": args });
                self.post("/api/v1/dispatch", &work)
            }
        }
    }
}

// === impl Told ===

impl Told {
    fn of(answer: &http::Answer) -> Self {
        let header = answer.head.lines().find_map(|line| line.strip_prefix("x-rialto-guardrail: "));
        let read: Value = serde_json::from_str(&answer.body).unwrap_or_default();
        Self {
            status: answer.status,
            code: read["error"]["code"].as_i64().or_else(|| read["code"].as_i64()),
            warning: header.map(str::to_owned),
            body: answer.body.clone(),
        }
    }
}

fn message_of(answer: &http::Answer) -> Value {
    message(answer)
}

impl Door {
    const fn is_stream(self) -> bool {
        matches!(self, Self::JsonRpcStream | Self::RestStream | Self::GrpcStream)
    }

    /// What it answers to something that is blocked before a task exists: its status and its code.
    const fn refusal(self) -> (u16, Option<i64>) {
        match self {
            Self::Stdio => (0, Some(-32209)),
            Self::McpHttp | Self::JsonRpc | Self::JsonRpcStream | Self::JsonRpcOld => (200, Some(-32209)),
            Self::Rest | Self::RestStream => (403, Some(403)),
            Self::Grpc | Self::GrpcStream => (7, None),
            Self::Plain | Self::Dispatch => (403, Some(-32209)),
        }
    }

    /// Whether a task that failed is told as such there, and not as an error.
    const fn tells_tasks(self) -> bool {
        !matches!(self, Self::Stdio | Self::McpHttp | Self::Plain | Self::Dispatch)
    }
}

#[test]
fn each_action_does_what_it_says_at_each_door_on_the_way_in() {
    let mut house = House::open();
    for door in DOORS {
        let told = house.say(door, "block", "echo", INSIDE);
        assert!(!told.body.contains(INSIDE), "{door:?}: {told:?}");
        assert_eq!((told.status, told.code), door.refusal(), "{door:?}: {told:?}");
        assert!(told.body.contains("regex/mark"), "{door:?}: {told:?}");
        assert!(house.heard("block").is_empty(), "{door:?}: nothing is executed");

        let told = house.say(door, "redact", "echo", INSIDE);
        assert!(told.body.contains("it is [mark].") && !told.body.contains(INSIDE), "{door:?}: {told:?}");
        let heard = house.heard("redact");
        assert!(heard.last().unwrap().contains("it is [mark]."), "{door:?}: {heard:?}");
        assert!(!heard.concat().contains(INSIDE), "{door:?}: {heard:?}");

        let told = house.say(door, "warn", "echo", INSIDE);
        assert!(told.body.contains(INSIDE), "{door:?}: {told:?}");
        check_warned(door, &told);

        let told = house.say(door, "log", "echo", INSIDE);
        assert!(told.body.contains(INSIDE) && told.warning.is_none(), "{door:?}: {told:?}");
        assert!(!told.body.contains("rialto/guardrail"), "{door:?}: {told:?}");
    }
    let log = until("it is logged", || {
        let log = house.server.log();
        log.contains("guardrail: regex/mark in what was said to log.echo: noted").then_some(log)
    });
    assert!(log.contains("guardrail: regex/mark in what was said to block.echo: blocked"));
    let page = metrics(&house.server);
    let blocked = r#"rialto_guardrail_findings_total{check="regex",action="block",direction="input"} "#;
    assert!(page.contains(blocked), "{page}");
    assert!(page.contains(r#"outcome="blocked""#), "{page}");
}

#[test]
fn each_action_does_what_it_says_at_each_door_on_the_way_back() {
    let mut house = House::open();
    for door in DOORS {
        let told = house.say(door, "block", "echo", OUTSIDE);
        assert!(told.body.contains("regex/mark"), "{door:?}: {told:?}");
        if door.tells_tasks() {
            assert!(told.body.to_lowercase().contains("failed"), "{door:?}: {told:?}");
        } else {
            assert_eq!((told.status, told.code), door.refusal(), "{door:?}: {told:?}");
        }
        // What was said is not what was answered: the artifact is not there.
        assert!(!told.body.contains("artifact\":{\"artifactId"), "{door:?}: {told:?}");

        let told = house.say(door, "block", "digits", "nothing");
        assert!(!told.body.contains("12345678901234567890"), "{door:?}: {told:?}");

        let told = house.say(door, "redact", "echo", OUTSIDE);
        assert!(told.body.contains("it is [mark]."), "{door:?}: {told:?}");
        assert!(house.heard("redact").last().unwrap().contains(OUTSIDE), "{door:?}: what is said goes on");

        let told = house.say(door, "warn", "echo", OUTSIDE);
        assert!(told.body.contains(OUTSIDE), "{door:?}: {told:?}");
        check_warned(door, &told);

        let told = house.say(door, "log", "echo", OUTSIDE);
        assert!(told.body.contains(OUTSIDE) && told.warning.is_none(), "{door:?}: {told:?}");
    }
    let page = metrics(&house.server);
    for action in ACTIONS {
        let found = format!(r#"check="regex",action="{action}",direction="output""#);
        assert!(page.contains(&found), "{found} is not in {page}");
    }
}

/// A warning is in a header, where there still can be one, and with the task.
#[track_caller]
fn check_warned(door: Door, told: &Told) {
    if door.is_stream() {
        assert!(told.warning.is_none(), "{door:?}: the stream had begun: {told:?}");
    } else {
        let expected = if door == Door::Stdio { "" } else { "warn; checks=regex; kinds=mark" };
        assert_eq!(told.warning.as_deref(), Some(expected), "{door:?}: {told:?}");
    }
    let is_in_body = !matches!(door, Door::Plain | Door::Dispatch);
    assert_eq!(told.body.contains("rialto/guardrail"), is_in_body, "{door:?}: {told:?}");
}

#[test]
fn what_is_blocked_never_reaches_peer_store_or_log() {
    let mut house = House::open();
    for door in DOORS {
        let told = house.say(door, "block", "echo", INSIDE);
        assert!(!told.body.contains(INSIDE), "{door:?}: {told:?}");
        house.say(door, "block", "digits", "harmless");
    }
    let House { rialto, agents, mut server, stdio, .. } = house;
    assert!(server.stop().success());
    let said = format!("{}{}", server.log(), stdio.leave());
    let heard = agents[0].heard().concat();
    assert!(heard.contains("harmless") && !heard.contains(INSIDE), "{heard}");
    let digits = &DIGITS[7..37];
    assert!(!said.contains(INSIDE) && !said.contains(digits), "{said}");
    assert!(said.contains("guardrail: regex/mark"), "{said}");
    let mut searched = 0;
    look_into(&rialto.data(), &mut |path, bytes| {
        searched += bytes.len();
        for mark in [INSIDE, digits] {
            let is_there = bytes.windows(mark.len()).any(|window| window == mark.as_bytes());
            assert!(!is_there, "{mark} is in {}", path.display());
        }
    });
    assert!(searched > 10_000, "there was something to search");
    let trail = rialto.json(&["audit", "--limit", "500", "--json"]);
    let withheld = trail.as_array().unwrap().iter().filter(|record| {
        record["event"]["args"]["withheld"].is_string() && record["event"]["context"]["denied"] == true
    });
    assert_eq!(withheld.count(), DOORS.len(), "each blocked call is on record");
    assert!(trail.to_string().contains("\"kinds\":[\"mark\"]"));
    rialto.cli(&["audit", "verify"]).ok();
}

fn look_into(folder: &std::path::Path, found: &mut impl FnMut(&std::path::Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            look_into(&path, found);
        } else {
            found(&path, &std::fs::read(&path).unwrap());
        }
    }
}

fn metrics(server: &Server) -> String {
    http::get(&format!("{}/metrics", server.url)).unwrap().body
}

#[test]
fn guardrails_change_while_the_server_runs_and_mistakes_change_nothing() {
    let rialto = Rialto::fresh();
    let agent = SampleAgent::named("Desk");
    let file = rialto.folder().join("rialto.toml");
    std::fs::write(&file, "").unwrap();
    rialto.trust(&agent.url);
    let server = rialto.serve(&[]);
    let call = || server.call("desk.echo", &json!({ "to": "ann@example.org" })).answer;
    call().unwrap();
    std::fs::write(&file, "[[guardrails.checks]]\ntype = \"pii\"\n").unwrap();
    let error = until("the guardrails are in force", || call().err());
    assert_eq!(error["data"]["class"], "GuardrailBlockedError");
    std::fs::write(&file, "[[guardrails.checks]]\ntype = \"pi\"\n").unwrap();
    until("the mistake is logged", || server.log().contains("did you mean \"pii\"?").then_some(()));
    assert!(call().is_err(), "the ones before stay in force");
    std::fs::write(&file, "").unwrap();
    until("they are gone", || call().ok());
}

#[test]
fn guardrails_that_do_not_hold_up_are_refused_at_the_start_by_name() {
    let rialto = Rialto::fresh();
    let text = "[guardrails.skills.\"desk.*\"]\nchecks = [{ type = \"regex\", config.patterns = [{ name = \"x\", pattern = \"(\" }] }]\n";
    std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
    let said = rialto.cli(&["agents", "list"]);
    assert_ne!(said.status, 0);
    assert!(said.err.contains("guardrails.skills.\"desk.*\""), "{}", said.err);
    let doctor = rialto.cli(&["doctor"]);
    assert!(format!("{}{}", doctor.out, doctor.err).contains("guardrails"), "{doctor:?}");
}

#[test]
fn configured_guardrails_are_tried_out_and_shown() {
    let rialto = Rialto::fresh().with("RIALTO_TOKEN", "mine");
    let text = "[guardrails]\naction = \"log\"\nchecks = [{ type = \"pii\" }]\n\
                [guardrails.orgs.acme]\nchecks = [{ type = \"secrets\" }]\n\
                [guardrails.skills.\"desk.book\"]\naction = \"redact\"\nchecks = [{ type = \"pii\", config.kinds = [\"email\"] }]\n";
    std::fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
    let told = rialto.json(&["guard", "test", "--json", "to ann@example.org"]);
    assert_eq!((&told["verdict"], &told["guardrails"]), (&json!("log"), &json!(["guardrails"])));
    let told = rialto.json(&[
        "guard",
        "test",
        "--skill",
        "desk.book",
        "--org",
        "acme",
        "--json",
        "to ann@example.org",
    ]);
    assert_eq!(told["verdict"], "redact", "the strictest wins");
    let places = json!(["guardrails", "guardrails.orgs.acme", "guardrails.skills.\"desk.book\""]);
    assert_eq!(told["guardrails"], places);
    let said = rialto.cli(&["guard", "test", "--skill", "desk.book", "hello"]).ok().out;
    assert!(said.contains("Guardrails: guardrails, guardrails.skills.\"desk.book\""), "{said}");
    rialto.cli(&["guard", "test", "--checks", "pii", "to ann@example.org"]).exit(3);

    rialto.cli(&["policy", "add", "allow-admin", "admin_policies", "--caller", "owner"]).ok();
    let server = rialto.serve(&[]);
    let headers = [("Authorization", "Bearer mine")];
    let shown = http::get_with(&format!("{}/api/v1/guardrails", server.url), None, &headers);
    let read: Value = serde_json::from_str(&shown.body).unwrap_or_else(|_| panic!("{shown:?}"));
    assert_eq!(read["guardrails"]["action"], "log", "{shown:?}");
    assert_eq!(read["guardrails"]["orgs"], json!({}), "another org's are its own");
    let test = |body: Value| {
        http::post(&format!("{}/api/v1/guardrails/test", server.url), &headers, &body.to_string())
    };
    let tried = test(json!({ "text": "to ann@example.org", "skill": "desk.book" }));
    let read: Value = serde_json::from_str(&tried.body).unwrap();
    assert_eq!((&read["verdict"], &read["findings"][0]["kind"]), (&json!("redact"), &json!("email")));
    assert!(!tried.body.contains("ann@"), "{tried:?}");
    assert_eq!(test(json!({})).status, 400);
    assert_eq!(http::get(&format!("{}/api/v1/guardrails", server.url)).unwrap().status, 401);
}
