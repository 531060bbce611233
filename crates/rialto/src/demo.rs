//! `rialto demo`: a demonstration with built-in agents of several A2A versions and a real server.
//!
//! Nothing is stored: the registry is in memory, and all listeners use free loopback ports and end with the demo.

mod agents;
mod client;

use console::style;
use rialto_engine::registry::Registration;
use rialto_http_server::{auth::Authentication, listener::HttpListener};
use rialto_model::{agent::AgentTrust, ids::Scope};
use serde_json::{Value, json};

use self::{agents::SampleAgent, client::DemoMcpClient};
use crate::{
    app::{App, DataLocation},
    cli::DemoOptions,
    commands::serve,
    config::Config,
    console_host,
    environment::Environment,
    output::{self, CommandError, sanitize},
};

/// Agent with an external trust level.
const UNTRUSTED_AGENT: &str = "stranger";

/// Step of the demo and its expected outcome.
struct DemoStep {
    title: &'static str,
    tool: &'static str,
    arguments: Value,
    expect: ExpectedOutcome,
}

enum ExpectedOutcome {
    /// A result that contains this text.
    Result(&'static str),
    /// A result that contains this text, with progress on the way.
    Stream(&'static str),
    /// An error with this code.
    Error(i64),
}

pub(crate) async fn run(options: DemoOptions, environment: &Environment) -> Result<(), CommandError> {
    let samples = agents::start_all()
        .await
        .map_err(|error| CommandError::failed(format!("no sample agent could be started: {error}")))?;
    let program = App::open(Config::default(), DataLocation::Memory, None, environment).await?;
    let door =
        HttpListener::open("127.0.0.1:0").await.map_err(|error| CommandError::failed(error.to_string()))?;
    let url = format!("http://{}/mcp", door.address());
    let sessions = console_host::open_sessions(&program.engine).await?;
    let app = serve::build_app(&program, Authentication::Open(program.local_caller()), sessions, &door)?;
    let stop = program.stop().clone();
    let served = tokio::spawn(serve::serve_until(door, app, serve::worker_threads(&program)?, stop.clone()));

    print_heading("Sample A2A agents of four generations, and a gateway");
    register(&program, &samples).await?;
    let client = DemoMcpClient::new(&url).map_err(CommandError::failed)?;
    let shown = run_steps(&program, &client).await;
    print_connect_hint(&url);
    if shown.is_ok() && !options.once {
        let terminated = serve::stop_signal();
        program.start();
        output::print_line("\nThe agents and the server run until you press Ctrl-C.");
        terminated.await;
    }
    stop.cancel();
    let _ = served.await;
    shown
}

async fn register(program: &App, samples: &[SampleAgent]) -> Result<(), CommandError> {
    let mut rows = Vec::new();
    for sample in samples {
        let slug = rialto_model::name::agent_slug(sample.name);
        let trust = if slug == UNTRUSTED_AGENT { AgentTrust::External } else { AgentTrust::Trusted };
        let registration =
            Registration { trust: Some(trust), allow_private: true, ..Registration::new(&sample.url) };
        let agent = program.engine.registry().register(registration).await?.agent;
        rows.push(vec![
            agent.card.name.clone(),
            sample.generation.to_owned(),
            agent.url.clone(),
            agent.trust.to_string(),
        ]);
    }
    output::print_table(&["agent", "speaks a2a", "url", "trust"], rows);
    Ok(())
}

async fn run_steps(program: &App, client: &DemoMcpClient) -> Result<(), CommandError> {
    print_heading("An MCP client lists the tools (tools/list)");
    let listed = client.request("tools/list", json!({}), |_| {}).await.map_err(CommandError::failed)?;
    let listed = listed.map_err(|error| CommandError::failed(format!("tools/list failed: {error}")))?;
    for tool in listed["tools"].as_array().into_iter().flatten() {
        let text = |member: &str| sanitize(tool[member].as_str().unwrap_or_default());
        output::print_line(format!("  {:<22} {}", text("name"), style(text("description")).dim()));
    }
    let mut failed = 0;
    for step in steps() {
        failed += usize::from(!run_step(client, &step).await?);
    }
    print_heading("The fix that the denial names: rialto agents trust stranger trusted");
    let registry = program.engine.registry();
    let stranger = registry.find(&Scope::default(), UNTRUSTED_AGENT)?;
    registry.set_trust(&stranger, AgentTrust::Trusted).await?;
    let again = DemoStep {
        title: "The same call, once the agent is trusted",
        tool: "stranger.gossip",
        arguments: json!({ "about": "the bridge" }),
        expect: ExpectedOutcome::Result("bridge"),
    };
    failed += usize::from(!run_step(client, &again).await?);
    print_heading(if failed == 0 {
        "Everything crossed as it should"
    } else {
        "Not everything crossed as it should"
    });
    if failed == 0 {
        Ok(())
    } else {
        Err(CommandError::failed(format!("{failed} steps did not show what they should")))
    }
}

fn steps() -> Vec<DemoStep> {
    vec![
        DemoStep {
            title: "A data result, from a 1.0 agent",
            tool: "weather_desk.forecast",
            arguments: json!({ "city": "Venice" }),
            expect: ExpectedOutcome::Result("Venice"),
        },
        DemoStep {
            title: "A text result, from a 0.3 agent",
            tool: "night_porter.greet",
            arguments: json!({ "name": "Ada" }),
            expect: ExpectedOutcome::Result("Ada"),
        },
        DemoStep {
            title: "A stream, shown as it arrives",
            tool: "night_porter.story",
            arguments: json!({}),
            expect: ExpectedOutcome::Stream(""),
        },
        DemoStep {
            title: "An agent of the first generation (0.1)",
            tool: "old_scribe.copy",
            arguments: json!({ "text": "to be copied" }),
            expect: ExpectedOutcome::Result("to be copied"),
        },
        DemoStep {
            title: "Arguments that the skill's schema does not allow",
            tool: "weather_desk.forecast",
            arguments: json!({ "city": 7 }),
            expect: ExpectedOutcome::Error(-32602),
        },
        DemoStep {
            title: "A task that fails",
            tool: "broken_clock.tell",
            arguments: json!({}),
            expect: ExpectedOutcome::Error(-32204),
        },
        DemoStep {
            title: "A denial: the agent is external and no policy permits the call",
            tool: "stranger.gossip",
            arguments: json!({ "about": "the bridge" }),
            expect: ExpectedOutcome::Error(-32003),
        },
    ]
}

/// Runs a step and prints its outcome. Returns true if it is the expected one.
async fn run_step(client: &DemoMcpClient, step: &DemoStep) -> Result<bool, CommandError> {
    print_heading(step.title);
    output::print_line(format!("  → {} {}", step.tool, step.arguments));
    let mut progress = 0;
    let params = json!({ "name": step.tool, "arguments": step.arguments });
    let answer = client
        .request("tools/call", params, |text| {
            progress += 1;
            output::print_line(format!("  · {}", style(sanitize(text)).dim()));
        })
        .await
        .map_err(CommandError::failed)?;
    let as_expected = match (&answer, &step.expect) {
        (Ok(result), ExpectedOutcome::Result(text)) => result.to_string().contains(text),
        (Ok(result), ExpectedOutcome::Stream(text)) => progress > 0 && result.to_string().contains(text),
        (Err(error), ExpectedOutcome::Error(code)) => error["code"] == *code,
        _ => false,
    };
    match &answer {
        Ok(result) => output::print_line(format!("  ← {}", readable(result))),
        Err(error) => output::print_line(format!(
            "  ← error {}: {}",
            error["code"],
            sanitize(error["message"].as_str().unwrap_or_default())
        )),
    }
    if !as_expected {
        output::print_line(format!("  {}", style("unexpected response").red()));
    }
    Ok(as_expected)
}

fn readable(result: &Value) -> String {
    match &result["structuredContent"] {
        Value::Null => {
            let texts =
                result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            sanitize(&texts.collect::<Vec<_>>().join(" "))
        }
        data => sanitize(&data.to_string()),
    }
}

fn print_connect_hint(url: &str) {
    print_heading("Connect a real MCP client");
    output::print_line(format!("  Claude Code   claude mcp add --transport http rialto {url}"));
    output::print_line(format!("  Gemini CLI    gemini mcp add --transport http rialto {url}"));
    output::print_line(format!(
        "  Inspector     npx @modelcontextprotocol/inspector --cli {url} --transport http --method tools/list"
    ));
    output::print_line("  Your agents   rialto mcp --agent https://agents.example.com/reviewer");
}

fn print_heading(text: &str) {
    output::print_line(format!("\n{}", style(text).bold()));
}
