//! Two orgs with an owner each: nothing that one does shows, changes or stops anything of the other.

use serde_json::{Value, json};

use crate::harness::{
    agent::SampleAgent,
    http::{self, HttpAnswer},
    rialto::Rialto,
    server::ServerProcess,
};

/// One org: its owner's token, and the ids of what is in it.
struct Org {
    name: &'static str,
    token: String,
    agent: SampleAgent,
    agent_id: String,
    task: String,
    token_id: String,
    webhook: String,
}

struct TwoOrgs {
    rialto: Rialto,
    server: ServerProcess,
    acme: Org,
    beta: Org,
}

// === impl Org ===

impl Org {
    fn create(rialto: &Rialto, server: &ServerProcess, name: &'static str) -> Self {
        let created = rialto.json(&["orgs", "create", name, "--owner", &format!("olga-{name}"), "--json"]);
        let token = created["token"].as_str().unwrap().to_owned();
        let agent = SampleAgent::named(&format!("Desk {name}"));
        let added = rialto.json(&["agents", "add", &agent.url, "--allow", "--org", name, "--json"]);
        let agent_id = added["id"].as_str().unwrap().to_owned();
        let mut org = Self {
            name,
            token,
            agent,
            agent_id,
            task: String::new(),
            token_id: String::new(),
            webhook: String::new(),
        };
        org.task = org.call(server)["id"].as_str().unwrap().to_owned();
        let forbid = json!({ "text": format!("@id(\"{name}-secret\") forbid (principal == User::\"nobody\", action, resource);") });
        let saved = org.ask(server, "PUT", &format!("/api/v1/policies/{name}-policy"), &forbid);
        assert_eq!(saved.status, 200, "{saved:?}");
        let made = org.ask(server, "POST", "/api/v1/tokens", &json!({ "caller": format!("ann-{name}") }));
        org.token_id = body(&made)["id"].as_str().unwrap().to_owned();
        let hook = json!({ "url": format!("http://127.0.0.1:9/{name}") });
        let made = org.ask(server, "POST", "/api/v1/webhooks", &hook);
        org.webhook = body(&made)["id"].as_str().unwrap().to_owned();
        let flow = format!("name: flow-{name}\nnodes: {{ a: {{ type: tool, tool: desk_{name}.echo }} }}\n");
        let bearer = format!("Bearer {}", org.token);
        let url = format!("{}/api/v1/workflows", server.url);
        let made = http::post(&url, &[("Authorization", bearer.as_str())], &flow);
        assert!(made.status < 300, "{made:?}");
        org
    }

    fn ask(&self, server: &ServerProcess, method: &str, path: &str, body: &Value) -> HttpAnswer {
        ask(server, &self.token, method, path, body)
    }

    /// Calls the org's own agent, which completes.
    fn call(&self, server: &ServerProcess) -> Value {
        let path = format!("/call/desk_{}.echo", self.name);
        let answer = self.ask(server, "POST", &path, &json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
        let tasks = self.ask(server, "GET", "/api/v1/tasks", &Value::Null);
        body(&tasks)["tasks"][0].clone()
    }

    /// All that its owner sees of it.
    fn state(&self, server: &ServerProcess) -> Vec<Value> {
        ["policies?texts=true", "agents", "tokens", "webhooks", "workflows", "projects", "approvals"]
            .map(|path| settled(body(&self.ask(server, "GET", &format!("/api/v1/{path}"), &Value::Null))))
            .to_vec()
    }
}

// === impl TwoOrgs ===

impl TwoOrgs {
    fn set() -> Self {
        let rialto = Rialto::fresh().with("RIALTO_SERVER__ALLOW_PRIVATE_OVER_API", "true");
        let server = rialto.serve(&[]);
        let [acme, beta] = ["acme", "beta"].map(|name| Org::create(&rialto, &server, name));
        Self { rialto, server, acme, beta }
    }
}

/// The same without what moves by itself: how deliveries and probes went.
fn settled(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            let moving = [
                "handled",
                "delivered",
                "lost",
                "failures",
                "nextAttemptAt",
                "lastError",
                "disabled",
                "state",
                "lastSeenAt",
                "health",
            ];
            members.retain(|name, _| !moving.contains(&name.as_str()));
            members.values_mut().for_each(|member| *member = settled(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = settled(item.take())),
        _ => {}
    }
    value
}

fn body(answer: &HttpAnswer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
}

fn ask(server: &ServerProcess, token: &str, method: &str, path: &str, body: &Value) -> HttpAnswer {
    let (url, bearer) = (format!("{}{path}", server.url), format!("Bearer {token}"));
    let headers = [("Authorization", bearer.as_str())];
    match method {
        "GET" => http::get_with(&url, None, &headers),
        "DELETE" => http::delete(&url, &headers),
        "PUT" => http::put(&url, &headers, &body.to_string()),
        _ => http::post(&url, &headers, &body.to_string()),
    }
}

/// Every operation that an owner can aim at something of another org, by id and by name.
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn operations(other: &Org) -> Vec<(&'static str, String, Value)> {
    let (name, agent, task) = (other.name, &other.agent_id, &other.task);
    let mut operations = vec![
        ("GET", format!("/{name}/main/api/v1/agents"), Value::Null),
        ("GET", format!("/{name}/main/api/v1/policies"), Value::Null),
        ("POST", format!("/{name}/main/api/v1/tokens"), json!({ "caller": "eve" })),
        ("GET", format!("/{name}/main/factory/agents"), Value::Null),
        ("POST", format!("/{name}/main/call/desk_{name}.echo"), json!({})),
        ("POST", format!("/call/desk_{name}.echo"), json!({})),
        ("GET", format!("/a2a/agents/desk_{name}/.well-known/agent-card.json"), Value::Null),
        ("GET", format!("/api/v1/tasks/{task}"), Value::Null),
        ("GET", format!("/api/v1/tasks/{task}/inspect"), Value::Null),
        ("POST", format!("/api/v1/tasks/{task}/cancel"), json!({})),
        ("DELETE", format!("/api/v1/tokens/{}", other.token_id), Value::Null),
        ("DELETE", format!("/api/v1/webhooks/{}", other.webhook), Value::Null),
        ("POST", format!("/api/v1/webhooks/{}/test", other.webhook), json!({})),
        ("GET", format!("/api/v1/workflows/flow-{name}"), Value::Null),
        ("DELETE", format!("/api/v1/workflows/flow-{name}"), Value::Null),
        ("POST", format!("/api/v1/workflows/flow-{name}/runs"), json!({})),
        ("POST", "/api/v1/tokens".to_owned(), json!({ "caller": "eve", "org": name })),
        ("POST", "/api/v1/webhooks".to_owned(), json!({ "url": "http://127.0.0.1:9/eve", "org": name })),
        ("POST", "/api/v1/orgs".to_owned(), json!({ "org": "third" })),
        ("DELETE", format!("/api/v1/orgs/{name}?force=true"), Value::Null),
        ("DELETE", "/api/v1/orgs/default?force=true".to_owned(), Value::Null),
        ("GET", "/api/v1/secrets".to_owned(), Value::Null),
        ("PUT", "/api/v1/secrets/x".to_owned(), json!({ "value": "y" })),
    ];
    for key in [agent.as_str(), &format!("desk_{name}"), &other.agent.url] {
        let path = format!("/api/v1/agents/{}", key.replace(':', "%3A").replace('/', "%2F"));
        operations.extend([
            ("GET", path.clone(), Value::Null),
            ("DELETE", path.clone(), Value::Null),
            ("POST", format!("{path}/trust"), json!({ "trust": "trusted" })),
            ("POST", format!("{path}/refresh"), json!({})),
            ("POST", format!("{path}/approve"), json!({})),
            ("PUT", format!("{path}/credential"), json!({ "source": "env:PATH" })),
        ]);
        let allow = json!({ "kind": "allow-agent", "target": key });
        operations.push(("POST", "/api/v1/policies/templates".to_owned(), allow));
    }
    for policy in
        [&format!("{name}-policy"), &format!("{name}-secret"), "starter", "owner", "allow-admin-all"]
    {
        operations.extend([
            ("GET", format!("/api/v1/policies/{policy}"), Value::Null),
            ("DELETE", format!("/api/v1/policies/{policy}"), Value::Null),
            ("DELETE", format!("/api/v1/policies/{name}%2F{policy}"), Value::Null),
            ("DELETE", format!("/api/v1/policies/{policy}?allOrgs=true"), Value::Null),
            ("POST", format!("/api/v1/policies/{policy}/restore"), json!({ "version": 1 })),
        ]);
    }
    let everything = "forbid (principal, action, resource);";
    operations.extend([
        ("PUT", "/api/v1/policies/x?allOrgs=true".to_owned(), json!({ "text": everything })),
        ("PUT", format!("/api/v1/policies/{name}%2Fx"), json!({ "text": everything })),
        (
            "PUT",
            "/api/v1/policies/x".to_owned(),
            json!({ "text": format!("forbid (principal, action, resource == Org::\"{name}\");") }),
        ),
        (
            "PUT",
            "/api/v1/policies/x".to_owned(),
            json!({ "text": format!("forbid (principal in Org::\"{name}\", action, resource);") }),
        ),
        (
            "PUT",
            "/api/v1/policies/x".to_owned(),
            json!({ "text": "permit (principal, action, resource) when { principal in Org::\"default\" };" }),
        ),
        (
            "PUT",
            "/api/v1/policies/x".to_owned(),
            json!({ "text": format!("permit (principal, action, resource in A2AAgent::\"{agent}\");") }),
        ),
        (
            "POST",
            "/api/v1/policies/templates".to_owned(),
            json!({ "kind": "allow-trust", "target": "external", "allOrgs": true }),
        ),
    ]);
    operations
}

#[test]
fn no_operation_of_one_orgs_owner_shows_changes_or_stops_anything_of_another() {
    let orgs = TwoOrgs::set();
    for (own, other) in [(&orgs.acme, &orgs.beta), (&orgs.beta, &orgs.acme)] {
        let (before, policies) = (other.state(&orgs.server), orgs.rialto.json(&["policy", "list", "--json"]));
        for (method, path, wanted) in operations(other) {
            let answer = own.ask(&orgs.server, method, &path, &wanted);
            assert!(
                (400..500).contains(&answer.status) && answer.status != 405,
                "{} {method} {path} {wanted}: {answer:?}",
                own.name
            );
            let told = answer.body.replace(&path, "");
            assert!(!told.contains(&format!("olga-{}", other.name)), "{method} {path}: {answer:?}");
        }
        assert_eq!(other.state(&orgs.server), before);
        assert_eq!(
            orgs.rialto.json(&["policy", "list", "--json"]),
            policies,
            "those of all orgs and of default"
        );
        other.call(&orgs.server);
    }
}

#[test]
fn lists_of_one_org_have_nothing_of_another_in_them() {
    let orgs = TwoOrgs::set();
    for (own, other) in [(&orgs.acme, &orgs.beta), (&orgs.beta, &orgs.acme)] {
        let lists = [
            "agents",
            "policies",
            "policies?texts=true",
            "policies/check",
            "policies/matrix",
            "tokens",
            "webhooks",
            "workflows",
            "runs",
            "tasks",
            "approvals",
            "audit",
            "costs",
            "overview",
            "tools",
            "dispatches",
            "guardrails",
            "orgs",
            "projects",
        ];
        for path in lists {
            let answer = own.ask(&orgs.server, "GET", &format!("/api/v1/{path}"), &Value::Null);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            assert!(!answer.body.contains(other.name), "{path}: {answer:?}");
            assert!(
                !answer.body.contains("starter"),
                "policies of the server's owner are not shown: {path}: {answer:?}"
            );
        }
        let asked =
            json!({ "caller": "ann", "action": "a2a_invoke", "target": format!("desk_{}.echo", own.name) });
        let answer = own.ask(&orgs.server, "POST", "/api/v1/policies/test", &asked);
        assert_eq!(body(&answer)["decision"], "allow", "{answer:?}");
        assert!(!answer.body.contains(other.name), "{answer:?}");
    }
}

/// The forbid of one org, however wide, is its own: it is saved, it is answered so, and the others go on.
#[test]
fn an_org_that_shuts_itself_out_shuts_out_nobody_else() {
    let orgs = TwoOrgs::set();
    let everything = json!({ "text": "@id(\"shut\") forbid (principal, action, resource);" });
    let saved = orgs.acme.ask(&orgs.server, "PUT", "/api/v1/policies/shut", &everything);
    assert_eq!((saved.status, &body(&saved)["org"]), (200, &json!("acme")), "{saved:?}");
    let refused = orgs.acme.ask(&orgs.server, "GET", "/api/v1/policies", &Value::Null);
    assert_eq!(refused.status, 403, "{refused:?}");
    orgs.beta.call(&orgs.server);
    assert_eq!(orgs.beta.state(&orgs.server).len(), 7);
    // The server's owner mends it at the machine.
    orgs.rialto.cli(&["policy", "remove", "shut", "--org", "acme"]).ok();
    orgs.acme.call(&orgs.server);
}

#[test]
fn one_name_in_two_orgs_is_two_callers() {
    let orgs = TwoOrgs::set();
    let token = |org: &str| {
        let made = orgs.rialto.json(&["tokens", "create", "ann", "--scope", "admin", "--org", org, "--json"]);
        made["token"].as_str().unwrap().to_owned()
    };
    let [ann_of_acme, ann_of_beta] = ["acme", "beta"].map(token);
    let may = |token: &str| ask(&orgs.server, token, "GET", "/api/v1/tokens", &Value::Null).status == 200;
    assert!(!may(&ann_of_acme) && !may(&ann_of_beta));
    // The command that the denial names, pasted.
    let denied = ask(&orgs.server, &ann_of_acme, "GET", "/api/v1/tokens", &Value::Null);
    let command = denied.body.split('`').nth(1).unwrap_or_else(|| panic!("{denied:?}"));
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    assert!(words.contains(&"--org") && words.contains(&"acme"), "{command}");
    orgs.rialto.cli(&words).ok();
    assert!(may(&ann_of_acme) && !may(&ann_of_beta));
}

#[test]
fn an_org_is_removed_with_all_that_belongs_to_it_and_nothing_else() {
    let orgs = TwoOrgs::set();
    let refused = orgs.rialto.cli(&["orgs", "remove", "acme"]).exit(1);
    assert!(refused.err.contains("--force"), "{}", refused.err);
    orgs.rialto.cli(&["orgs", "remove", "acme", "--force"]).ok();
    let listed = orgs.rialto.json(&["orgs", "list", "--json"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|org| org["org"].as_str().unwrap()).collect();
    assert_eq!(names, ["beta", "default"]);
    assert_eq!(orgs.acme.ask(&orgs.server, "GET", "/api/v1/agents", &Value::Null).status, 401);
    orgs.beta.call(&orgs.server);
    assert_eq!(orgs.rialto.json(&["agents", "list", "--org", "acme", "--json"]), json!([]));
    orgs.rialto.cli(&["orgs", "remove", "default", "--force"]).exit(1);
    orgs.rialto.cli(&["projects", "create", "ops", "--org", "beta"]).ok();
    let projects = orgs.rialto.json(&["projects", "list", "--org", "beta", "--json"]);
    assert_eq!(projects.as_array().unwrap().len(), 2, "{projects}");
    orgs.rialto.cli(&["projects", "remove", "ops", "--org", "beta"]).ok();
}

/// The starter policy opens trusted agents to everybody: who may only administer agents trusts none.
#[test]
fn the_right_to_administer_agents_alone_opens_no_agent() {
    let orgs = TwoOrgs::set();
    orgs.rialto
        .cli(&["policy", "add", "allow-admin", "admin_agents", "--caller", "bob", "--org", "acme"])
        .ok();
    let made = orgs.rialto.json(&["tokens", "create", "bob", "--scope", "admin", "--org", "acme", "--json"]);
    let bob = made["token"].as_str().unwrap();
    let path = format!("/api/v1/agents/{}/trust", orgs.acme.agent_id);
    let trust = |level: &str| ask(&orgs.server, bob, "POST", &path, &json!({ "trust": level }));
    let refused = trust("trusted");
    assert!(refused.status == 403 && refused.body.contains("admin_policies"), "{refused:?}");
    assert_eq!(trust("external").status, 200);
}
