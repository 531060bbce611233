//! `rialto inspect TASK`: one call from both sides, after the fact.

use rialto_api_types::tasks::{CallInspection, CallerRequest, RecordedDecision, UpstreamRequest};
use rialto_model::json::Json;

use crate::{
    api_client::{ApiClient, parse_response},
    output::{self, CommandError},
};

/// Maximum length of a text in one line.
const MAX_LINE_CHARS: usize = 160;

pub(crate) async fn run(api: &ApiClient, id: &str, as_json: bool) -> Result<(), CommandError> {
    let response: Json = api.get(&["tasks", id, "inspect"]).read().await?;
    if as_json {
        output::print_json(&response);
    } else {
        print_inspection(&parse_response(&response)?);
    }
    Ok(())
}

fn print_inspection(inspected: &CallInspection) {
    let called = inspected.came_in.called.as_deref().unwrap_or_default();
    let state =
        inspected.state.map_or_else(|| "rejected before a task was created".to_owned(), |s| s.to_string());
    print_indented(&format!("{}  {called}  {state}", inspected.task_id));
    print_call(&inspected.came_in);
    if let Some(decision) = &inspected.decision {
        print_decision(decision);
    }
    print_upstream_call(&inspected.went_out);
    output::print_line("");
    let rows = inspected.timeline.iter().map(|entry| {
        vec![
            entry.at.strftime("%T%.3f").to_string(),
            format!("+{} ms", entry.after_ms),
            entry.who.as_str().to_owned(),
            first_line(&entry.what),
        ]
    });
    output::print_table(&["time (utc)", "after", "source", "event"], rows.collect());
}

fn print_call(came: &CallerRequest) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let scope = [text(&came.org), text(&came.project)].join("/");
    let door = Json::encode(&came.door).read::<Option<String>>().ok().flatten().unwrap_or_default();
    print_indented(&format!("request   {} by {door}, {}", text(&came.caller), scope.trim_end_matches('/')));
    print_indented(&format!("          {}", first_line(came.arguments.as_ref().map_or("", Json::get))));
}

fn print_decision(decision: &RecordedDecision) {
    let by = decision.policies.join(", ");
    let by = if by.is_empty() { by } else { format!(" by {by}") };
    let verdict = if decision.allowed { "allowed" } else { "denied" };
    print_indented(
        format!("policy    {verdict}{by} {}", decision.reason.as_deref().unwrap_or_default()).trim_end(),
    );
}

fn print_upstream_call(out: &UpstreamRequest) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    print_indented(&format!(
        "upstream  {} at {} ({})",
        text(&out.agent),
        text(&out.url),
        text(&out.protocol)
    ));
    let names =
        [("session", &out.session_id), ("task", &out.remote_task_id), ("context", &out.remote_context_id)];
    let names = names.into_iter().filter_map(|(label, id)| id.as_ref().map(|id| format!("{label} {id}")));
    print_indented(&format!("          {}", names.collect::<Vec<_>>().join(", ")));
    for sent in &out.sent {
        print_indented(&format!("          {}", first_line(sent.content.get())));
    }
}

fn print_indented(line: &str) {
    output::print_line(output::sanitize(line));
}

/// First line of a text, shortened.
fn first_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(&line)),
        None => line,
    }
}
