//! `rialto inspect TASK`: one call from both sides, after the fact.

use rialto_api_types::tasks::{CallInspection, CallerRequest, RecordedDecision, UpstreamRequest};
use rialto_model::json::Json;

use crate::{
    desk::{Desk, read},
    output::{self, Trouble},
};

/// So much of a text stands in one line.
const LINE: usize = 160;

pub(crate) async fn run(desk: &Desk, id: &str, as_json: bool) -> Result<(), Trouble> {
    let told: Json = desk.get(&["tasks", id, "inspect"]).read().await?;
    if as_json {
        output::json(&told);
    } else {
        print(&read(&told)?);
    }
    Ok(())
}

fn print(inspected: &CallInspection) {
    let called = inspected.came_in.called.as_deref().unwrap_or_default();
    let state =
        inspected.state.map_or_else(|| "refused before there was a task".to_owned(), |s| s.to_string());
    show(&format!("{}  {called}  {state}", inspected.task_id));
    print_call(&inspected.came_in);
    if let Some(decision) = &inspected.decision {
        print_decision(decision);
    }
    print_way_out(&inspected.went_out);
    output::line("");
    let rows = inspected.timeline.iter().map(|entry| {
        vec![
            entry.at.strftime("%T%.3f").to_string(),
            format!("+{} ms", entry.after_ms),
            entry.who.as_str().to_owned(),
            cut(&entry.what),
        ]
    });
    output::table(&["time (utc)", "after", "who", "what"], rows.collect());
}

fn print_call(came: &CallerRequest) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let scope = [text(&came.org), text(&came.project)].join("/");
    let door = Json::encode(&came.door).read::<Option<String>>().ok().flatten().unwrap_or_default();
    show(&format!("in    {} by {door}, {}", text(&came.caller), scope.trim_end_matches('/')));
    show(&format!("      {}", cut(came.arguments.as_ref().map_or("", Json::get))));
}

fn print_decision(decision: &RecordedDecision) {
    let by = decision.policies.join(", ");
    let by = if by.is_empty() { by } else { format!(" by {by}") };
    let verdict = if decision.allowed { "permitted" } else { "refused" };
    show(format!("may   {verdict}{by} {}", decision.reason.as_deref().unwrap_or_default()).trim_end());
}

fn print_way_out(out: &UpstreamRequest) {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    show(&format!("out   {} at {} ({})", text(&out.agent), text(&out.url), text(&out.protocol)));
    let names =
        [("session", &out.session_id), ("task", &out.remote_task_id), ("context", &out.remote_context_id)];
    let names = names.into_iter().filter_map(|(label, id)| id.as_ref().map(|id| format!("{label} {id}")));
    show(&format!("      {}", names.collect::<Vec<_>>().join(", ")));
    for sent in &out.sent {
        show(&format!("      {}", cut(sent.content.get())));
    }
}

fn show(line: &str) {
    output::line(output::printable(line));
}

/// One line of it.
fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LINE) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or(&line)),
        None => line,
    }
}
