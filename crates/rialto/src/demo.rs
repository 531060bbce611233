//! `rialto demo`: the bridge at work, with built-in agents of several generations and a real gateway.
//!
//! Nothing is kept: the registry lives in memory, everything listens on free loopback ports and ends with the demo.

mod agents;
mod client;

use console::style;
use rialto_edge::{auth::Authentication, serve::Door};
use rialto_engine::registry::Registration;
use rialto_model::{agent::AgentTrust, ids::Scope};
use serde_json::{Value, json};

use self::{agents::SampleAgent, client::McpClient};
use crate::{
    cli::Demo,
    commands::serve,
    config::Config,
    environment::Environment,
    office,
    output::{self, Trouble, printable},
    program::{Place, Program},
};

/// The agent nobody has vouched for.
const STRANGER: &str = "stranger";

/// What one step of the demo must show.
struct Step {
    title: &'static str,
    tool: &'static str,
    arguments: Value,
    expect: Expect,
}

enum Expect {
    /// A result that contains this text.
    Result(&'static str),
    /// A result that contains this text, with progress on the way.
    Stream(&'static str),
    /// An error with this code.
    Error(i64),
}

pub(crate) async fn run(options: Demo, environment: &Environment) -> Result<(), Trouble> {
    let samples = agents::start_all()
        .await
        .map_err(|error| Trouble::other(format!("no sample agent could be started: {error}")))?;
    let program = Program::open(Config::default(), Place::Memory, None, environment).await?;
    let door = Door::open("127.0.0.1:0").await.map_err(|error| Trouble::other(error.to_string()))?;
    let url = format!("http://{}/mcp", door.address());
    let sessions = office::sessions(&program.engine).await?;
    let app = serve::app(&program, Authentication::Open(program.local_caller()), sessions, &door)?;
    let stop = program.stop().clone();
    let served = tokio::spawn(serve::serve_until(door, app, serve::lanes(&program)?, stop.clone()));

    heading("Sample A2A agents of four generations, and a gateway");
    register(&program, &samples).await?;
    let client = McpClient::new(&url).map_err(Trouble::other)?;
    let shown = show(&program, &client).await;
    connect(&url);
    if shown.is_ok() && !options.once {
        let terminated = serve::terminated();
        program.start();
        output::line("\nThe agents and the gateway stay up until you press Ctrl-C.");
        terminated.await;
    }
    stop.cancel();
    let _ = served.await;
    shown
}

async fn register(program: &Program, samples: &[SampleAgent]) -> Result<(), Trouble> {
    let mut rows = Vec::new();
    for sample in samples {
        let slug = rialto_model::name::agent_slug(sample.name);
        let trust = if slug == STRANGER { AgentTrust::External } else { AgentTrust::Trusted };
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
    output::table(&["agent", "speaks a2a", "url", "trust"], rows);
    Ok(())
}

async fn show(program: &Program, client: &McpClient) -> Result<(), Trouble> {
    heading("An MCP client lists the tools (tools/list)");
    let listed = client.request("tools/list", json!({}), |_| {}).await.map_err(Trouble::other)?;
    let listed = listed.map_err(|error| Trouble::other(format!("tools/list failed: {error}")))?;
    for tool in listed["tools"].as_array().into_iter().flatten() {
        let text = |member: &str| printable(tool[member].as_str().unwrap_or_default());
        output::line(format!("  {:<22} {}", text("name"), style(text("description")).dim()));
    }
    let mut failed = 0;
    for step in steps() {
        failed += usize::from(!take(client, &step).await?);
    }
    heading("The fix that the denial names: rialto agents trust stranger trusted");
    let registry = program.engine.registry();
    let stranger = registry.find(&Scope::default(), STRANGER)?;
    registry.set_trust(&stranger, AgentTrust::Trusted).await?;
    let again = Step {
        title: "The same call, once the agent is trusted",
        tool: "stranger.gossip",
        arguments: json!({ "about": "the bridge" }),
        expect: Expect::Result("bridge"),
    };
    failed += usize::from(!take(client, &again).await?);
    heading(if failed == 0 {
        "Everything crossed as it should"
    } else {
        "Not everything crossed as it should"
    });
    if failed == 0 {
        Ok(())
    } else {
        Err(Trouble::other(format!("{failed} steps did not show what they should")))
    }
}

fn steps() -> Vec<Step> {
    vec![
        Step {
            title: "A data result, from a 1.0 agent",
            tool: "weather_desk.forecast",
            arguments: json!({ "city": "Venice" }),
            expect: Expect::Result("Venice"),
        },
        Step {
            title: "A text result, from a 0.3 agent",
            tool: "night_porter.greet",
            arguments: json!({ "name": "Ada" }),
            expect: Expect::Result("Ada"),
        },
        Step {
            title: "A stream, followed as it comes",
            tool: "night_porter.story",
            arguments: json!({}),
            expect: Expect::Stream(""),
        },
        Step {
            title: "An agent of the first generation (0.1)",
            tool: "old_scribe.copy",
            arguments: json!({ "text": "to be copied" }),
            expect: Expect::Result("to be copied"),
        },
        Step {
            title: "Arguments that the skill's schema does not allow",
            tool: "weather_desk.forecast",
            arguments: json!({ "city": 7 }),
            expect: Expect::Error(-32602),
        },
        Step {
            title: "A task that fails",
            tool: "broken_clock.tell",
            arguments: json!({}),
            expect: Expect::Error(-32204),
        },
        Step {
            title: "A denial: nobody has vouched for this agent",
            tool: "stranger.gossip",
            arguments: json!({ "about": "the bridge" }),
            expect: Expect::Error(-32003),
        },
    ]
}

/// Makes one call and prints what came of it. Answers whether it was what the step must show.
async fn take(client: &McpClient, step: &Step) -> Result<bool, Trouble> {
    heading(step.title);
    output::line(format!("  → {} {}", step.tool, step.arguments));
    let mut progress = 0;
    let params = json!({ "name": step.tool, "arguments": step.arguments });
    let answer = client
        .request("tools/call", params, |text| {
            progress += 1;
            output::line(format!("  · {}", style(printable(text)).dim()));
        })
        .await
        .map_err(Trouble::other)?;
    let as_expected = match (&answer, &step.expect) {
        (Ok(result), Expect::Result(text)) => result.to_string().contains(text),
        (Ok(result), Expect::Stream(text)) => progress > 0 && result.to_string().contains(text),
        (Err(error), Expect::Error(code)) => error["code"] == *code,
        _ => false,
    };
    match &answer {
        Ok(result) => output::line(format!("  ← {}", readable(result))),
        Err(error) => output::line(format!(
            "  ← error {}: {}",
            error["code"],
            printable(error["message"].as_str().unwrap_or_default())
        )),
    }
    if !as_expected {
        output::line(format!("  {}", style("this is not what it should be").red()));
    }
    Ok(as_expected)
}

fn readable(result: &Value) -> String {
    match &result["structuredContent"] {
        Value::Null => {
            let texts =
                result["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
            printable(&texts.collect::<Vec<_>>().join(" "))
        }
        data => printable(&data.to_string()),
    }
}

fn connect(url: &str) {
    heading("Connect a real MCP client");
    output::line(format!("  Claude Code   claude mcp add --transport http rialto {url}"));
    output::line(format!("  Gemini CLI    gemini mcp add --transport http rialto {url}"));
    output::line(format!(
        "  Inspector     npx @modelcontextprotocol/inspector --cli {url} --transport http --method tools/list"
    ));
    output::line("  Your agents   rialto mcp --agent https://agents.example.com/reviewer");
}

fn heading(text: &str) {
    output::line(format!("\n{}", style(text).bold()));
}
