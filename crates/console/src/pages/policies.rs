//! Who may do what: the policies in force, an editor that checks as one types, and a bench to try them on.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_edge::session::API;
use rialto_model::{call::CallerKind, failure::Failure};
use rialto_policy::{Action, STARTER};

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::policies::{self, Answer, Asked, Text, USUAL, Usual},
    text,
};

const HERE: &str = "/policies";

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    show(&visit, StatusCode::OK, None).await
}

pub(super) async fn add_usual(visit: Visit) -> Result<Response, Failure> {
    let text = |name| visit.field(name).unwrap_or_default().to_owned();
    let usual = Usual {
        kind: text("kind"),
        target: text("target"),
        caller: text("caller"),
        caller_kind: visit.field("caller_kind").and_then(kind),
        by: text("by"),
    };
    match policies::add_usual(&visit.console, &visit.caller, &usual).await {
        Ok(name) => Ok(visit.go(&format!("/policies/{}", encoded(&name)), "saved")),
        Err(failure) => show(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(&failure)).await,
    }
}

pub(super) async fn new(visit: Visit) -> Result<Response, Failure> {
    visit.console.admit(&visit.caller, Action::AdminPolicies).await?;
    let frame = visit.frame();
    let sample = "@id(\"mine\")\n@summary(\"say what it is for\")\npermit (\n    principal,\n    action == Action::\"a2a_invoke\",\n    resource is Skill\n)\nwhen { resource.tags.contains(\"public\") };\n";
    let body = editor(&frame, "", sample, None);
    Ok(frame.page(&Page { title: "New policy", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn edit(visit: Visit) -> Result<Response, Failure> {
    let found = policies::show(&visit.console, &visit.caller, visit.part("name")).await?;
    let versions = policies::history(&visit.console, &visit.caller, &found.name).await?;
    let frame = visit.frame();
    let body = html! {
        (editor(&frame, &found.name, &found.text, None))
        section.panel {
            h2 { "Versions" }
            @if versions.is_empty() { p.muted { "This is the first." } }
            @for (at, old) in versions.iter().take(20).enumerate() {
                details data-key=(format!("version-{at}")) {
                    summary { (old.version) " · " (old.at.strftime("%F %T UTC")) @if let Some(by) = &old.by { " by " (text::line(by, 60)) } }
                    @match &old.text { Some(old) => pre tabindex="0" { code { (text::visible(old, true)) } }, None => p.muted { "It was taken away." } }
                }
            }
        }
    };
    Ok(frame.page(&Page { title: "Policy", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn save(visit: Visit) -> Result<Response, Failure> {
    let (name, text) = (visit.field("name").unwrap_or_default(), visit.field("text").unwrap_or_default());
    // Browsers end lines in forms with both.
    let text = text.replace("\r\n", "\n");
    match policies::save(&visit.console, &visit.caller, name.trim(), &text).await {
        Ok(kept) => Ok(visit.go(&format!("/policies/{}", encoded(&kept)), "saved")),
        Err(failure) => {
            let frame = visit.frame();
            let body = editor(&frame, name, &text, Some(&failure));
            let page = Page { title: "Policy", at: HERE, live: None, is_over: false, body };
            Ok(frame.answer(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

pub(super) async fn ask_remove(visit: Visit) -> Result<Response, Failure> {
    let found = policies::show(&visit.console, &visit.caller, visit.part("name")).await?;
    let frame = visit.frame();
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::line(&found.name, 80)) "?" }
            p { (text::count(found.rules.len(), "policy", "policies")) " in it no longer count from the next call on. It can be restored with "
                code { "rialto policy restore" } "." }
            form method="post" action=(frame.to(&format!("/policies/{}/remove", encoded(&found.name)))) {
                (frame.proof())
                div.actions { button.danger type="submit" autofocus { "Remove" } a.button href=(frame.to(HERE)) { "Keep it" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Remove a policy", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn remove(visit: Visit) -> Result<Response, Failure> {
    policies::remove(&visit.console, &visit.caller, visit.part("name")).await?;
    Ok(visit.go(HERE, "removed"))
}

pub(super) async fn test(visit: Visit) -> Result<Response, Failure> {
    let text = |name| visit.query(name).unwrap_or_default().to_owned();
    let asked = Asked {
        caller: text("caller"),
        kind: visit.query("kind").and_then(kind),
        action: visit.query("action").unwrap_or(Action::Invoke.as_str()).to_owned(),
        target: text("target"),
    };
    visit.console.admit(&visit.caller, Action::AdminPolicies).await?;
    let is_asked = visit.query("action").is_some();
    let answer =
        if is_asked { Some(policies::test(&visit.console, &visit.caller, &asked).await) } else { None };
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Test bench" } p.sub { "Would it be allowed, and why?" } } }
        (question(&frame, &asked))
        div data-region="answer" aria-live="polite" {
            @match &answer {
                None => p.muted { "Nothing is called: policies are only asked." },
                Some(Err(failure)) => (layout::refused(Some(failure))),
                Some(Ok(answer)) => (answered(answer)),
            }
        }
    };
    Ok(frame.page(&Page { title: "Test bench", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn matrix(visit: Visit) -> Result<Response, Failure> {
    let names = visit.query("callers").unwrap_or(visit.caller.id.as_str()).to_owned();
    let callers: Vec<String> =
        names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let matrix = policies::matrix(&visit.console, &visit.caller, &callers).await?;
    let frame = visit.frame();
    let body = html! {
        div.top { div { h1 { "Who may call what" } p.sub { "As the policies in force say now" } } }
        form.filters method="get" action=(frame.to("/policies/matrix")) data-filter {
            div { label.vh for="callers" { "Callers, with commas between them" } input #callers type="search" name="callers" value=(names) placeholder="ann, bob"; }
            button type="submit" { "Show" }
        }
        div.panel.flush.scroll data-region="matrix" tabindex="0" role="region" aria-label="Who may call what" {
            table.matrix {
                thead { tr { th { "Skill" } @for caller in &matrix.callers { th { (text::line(caller, 30)) } } } }
                tbody {
                    @for (target, may) in &matrix.rows {
                        tr { td { (text::line(target, 80)) } @for may in may { td { @if *may { span.tag.good { "may" } } @else { span.tag { "no" } } } } }
                    }
                }
            }
            @if matrix.more > 0 { div.pages { "And " (matrix.more) " more skills." } }
        }
    };
    Ok(frame.page(&Page { title: "Who may call what", at: HERE, live: None, is_over: false, body }))
}

async fn show(visit: &Visit, status: StatusCode, failure: Option<&Failure>) -> Result<Response, Failure> {
    let texts = policies::list(&visit.console, &visit.caller).await?;
    let frame = visit.frame();
    let body = html! {
        div.top {
            div { h1 { "Policies" } p.sub { "Who may do what; each save is checked, and takes effect at once" } }
            div.actions {
                a.button href=(frame.to("/policies/test")) { "Test bench" }
                a.button href=(frame.to("/policies/matrix")) { "Who may call what" }
                a.button.first href=(frame.to("/policies/new")) { "New policy" }
            }
        }
        @for text in &texts { (listed(&frame, text)) }
        (usual_form(&frame, visit, failure))
    };
    Ok(frame.answer(status, &Page { title: "Policies", at: HERE, live: None, is_over: false, body }))
}

fn listed(frame: &Frame, found: &Text) -> Markup {
    let is_starter = found.text == STARTER;
    html! {
        section.panel {
            div.top {
                h2 { a href=(frame.to(&format!("/policies/{}", encoded(&found.name)))) { (text::line(&found.name, 80)) } @if is_starter { " " span.tag { "as installed" } } }
                a.button.quiet href=(frame.to(&format!("/policies/{}/remove", encoded(&found.name)))) data-dialog aria-label=(format!("Remove {}", found.name)) { "Remove" }
            }
            @if found.rules.is_empty() { p.muted { "No policy in it is in force." } }
            @for rule in &found.rules {
                p {
                    span class=(if rule.effect == rialto_policy::Effect::Permit { "tag good" } else { "tag bad" }) { (rule.effect.as_str()) }
                    " " (text::line(&rule.summary, 300)) " " span.muted.small { (text::line(&rule.name, 80)) }
                }
            }
        }
    }
}

fn usual_form(frame: &Frame, visit: &Visit, failure: Option<&Failure>) -> Markup {
    let given = |name| visit.field(name).unwrap_or_default();
    html! {
        form.panel method="post" action=(frame.to("/policies/templates")) {
            (frame.proof())
            h2 { "Write one of the usual policies" }
            (layout::refused(failure))
            div.filters {
                div {
                    label for="usual-kind" { "What" }
                    select #usual-kind name="kind" {
                        @for (kind, does, about) in USUAL { option value=(kind) selected[given("kind") == kind] { (does) " (" (about) ")" } }
                    }
                }
                div { label for="usual-target" { "About" } input #usual-target type="text" name="target" required value=(given("target")) placeholder="agent, agent.skill, tag …" autocomplete="off"; }
                div { label for="usual-caller" { "For" } input #usual-caller type="text" name="caller" value=(given("caller")) placeholder="everybody" autocomplete="off"; }
                button.first type="submit" { "Write" }
            }
        }
    }
}

fn editor(frame: &Frame, name: &str, source: &str, failure: Option<&Failure>) -> Markup {
    html! {
        div.top { div { h1 { @if name.is_empty() { "New policy" } @else { (text::line(name, 80)) } } p.sub { "Cedar; checked together with everything else that is in force" } } }
        (layout::refused(failure))
        form.panel method="post" action=(frame.to(HERE)) {
            (frame.proof())
            div.field {
                label for="policy-name" { "Name" }
                input #policy-name type="text" name="name" value=(name) required spellcheck="false" autocomplete="off" readonly[!name.is_empty() && failure.is_none()];
            }
            div.field {
                label for="policy-text" { "Policies" }
                textarea.code #policy-text name="text" spellcheck="false" data-validate=(format!("{}{API}/policies/validate", frame.base)) { "\n" (source) }
            }
            div #problems role="status" aria-live="polite" {}
            div.actions { button.first type="submit" { "Save" } a.button href=(frame.to(HERE)) { "Back" } }
        }
    }
}

fn question(frame: &Frame, asked: &Asked) -> Markup {
    html! {
        form.panel method="get" action=(frame.to("/policies/test")) data-filter {
            div.filters {
                div { label for="who" { "Caller" } input #who type="text" name="caller" value=(asked.caller) placeholder="you" autocomplete="off"; }
                div {
                    label for="kind" { "Kind" }
                    select #kind name="kind" {
                        @for (kind, name) in [(CallerKind::User, "user"), (CallerKind::Session, "session"), (CallerKind::Agent, "agent")] {
                            option value=(name) selected[asked.kind == Some(kind)] { (name) }
                        }
                    }
                }
                div {
                    label for="action" { "Action" }
                    select #action name="action" { @for action in Action::ALL { option value=(action.as_str()) selected[asked.action == action.as_str()] { (action.as_str()) } } }
                }
                div { label for="target" { "Target" } input #target type="search" name="target" value=(asked.target) placeholder="agent or agent.skill" autocomplete="off"; }
                button.first type="submit" { "Ask" }
            }
        }
    }
}

fn answered(answer: &Answer) -> Markup {
    html! {
        div class=(if answer.decision.allowed { "said good" } else { "said bad" }) {
            p { b { @if answer.decision.allowed { "Allowed: " } @else { "Refused: " } } (text::line(&answer.target, 120)) }
            @if let Some(why) = &answer.why_not { p { (text::line(why, 400)) } }
        }
        div.panel.flush {
            table.cards {
                thead { tr { th { "Policy" } th { "Effect" } th { "Here" } th { "Summary" } } }
                tbody { @for finding in &answer.findings {
                    tr {
                        td { (text::line(&finding.rule.name, 80)) }
                        td data-label="Effect" { (finding.rule.effect.as_str()) }
                        td data-label="Here" { (text::line(&finding.outcome.to_string(), 200)) }
                        td data-label="Summary" { (text::line(&finding.rule.summary, 200)) }
                    }
                } }
            }
        }
    }
}

fn kind(name: &str) -> Option<CallerKind> {
    match name {
        "user" => Some(CallerKind::User),
        "session" => Some(CallerKind::Session),
        "agent" => Some(CallerKind::Agent),
        _ => None,
    }
}
