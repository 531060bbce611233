//! Who may do what: the policies in force, and an editor that checks as one types.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_api_types::policies::NewPolicy;
use rialto_model::failure::{Failure, FailureKind};
use rialto_policy::{Action, OWNER_ADMIN, Problem, STARTER};

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        policies::{self, Location, Text, USUAL},
        what_if::{self, Difference},
    },
    office::PolicyVersion,
    text,
};

const HERE: &str = "/policies";

/// A text that is being written.
struct Edited<'a> {
    name: &'a str,
    source: &'a str,
    /// What marks the text that it was made from; empty where it is new.
    was: &'a str,
}

// === impl Edited ===

impl<'a> Edited<'a> {
    const fn new(name: &'a str, source: &'a str, was: &'a str) -> Self {
        Self { name, source, was }
    }
}

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    show(&visit, StatusCode::OK, None).await
}

pub(super) async fn add_usual(visit: Visit) -> Result<Response, Failure> {
    let text = |name| visit.field(name).unwrap_or_default().to_owned();
    let usual = NewPolicy {
        kind: text("kind"),
        target: text("target"),
        caller: text("caller"),
        caller_kind: visit.field("caller_kind").and_then(super::bench::kind),
        by: text("by"),
        ..NewPolicy::default()
    };
    match policies::add_usual(&visit.console, &visit.caller, &usual).await {
        Ok(kept) => Ok(visit.go(&format!("/policies/{}", encoded(&kept.listed)), "saved")),
        Err(failure) => show(&visit, StatusCode::UNPROCESSABLE_ENTITY, Some(&failure)).await,
    }
}

pub(super) async fn new(visit: Visit) -> Result<Response, Failure> {
    visit.console.admit(&visit.caller, Action::AdminPolicies).await?;
    let frame = visit.frame();
    let sample = "@id(\"mine\")\n@summary(\"say what it is for\")\npermit (\n    principal,\n    action == Action::\"a2a_invoke\",\n    resource is Skill\n)\nwhen { resource.tags.contains(\"public\") };\n";
    let body = editor(&frame, &Edited::new("", sample, ""), None, None);
    Ok(frame.page(&Page { title: "New policy", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn edit(visit: Visit) -> Result<Response, Failure> {
    let name = visit.part("name");
    let versions = policies::history(&visit.console, &visit.caller, name, Location::default()).await;
    let found = match policies::show(&visit.console, &visit.caller, name).await {
        Ok(found) => Some(found),
        // What was taken away can be had again.
        Err(failure)
            if failure.kind == FailureKind::NotFound
                && versions.as_ref().is_ok_and(|all| !all.is_empty()) =>
        {
            None
        }
        Err(failure) => return Err(failure),
    };
    let (versions, frame) = (versions?, visit.frame());
    let name = found.as_ref().map_or(name, |found| &found.name);
    let in_force = found.as_ref().map(|found| found.text.as_str());
    let body = html! {
        @match in_force {
            Some(text) => (editor(&frame, &Edited::new(name, text, &mark(text)), None, None)),
            None => div.top { div { h1 { (text::line(name, 80)) } p.sub { "It was taken away, and is not in force" } } },
        }
        section.panel {
            h2 { "Versions" }
            @if versions.is_empty() { p.muted { "This is the first." } }
            @for (at, old) in versions.iter().take(20).enumerate() { (earlier(&frame, name, in_force, at, old)) }
        }
    };
    Ok(frame.page(&Page { title: "Policy", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn save(visit: Visit) -> Result<Response, Failure> {
    let (name, text) = (visit.field("name").unwrap_or_default(), visit.field("text").unwrap_or_default());
    // Browsers end lines in forms with both.
    let text = text.replace("\r\n", "\n");
    let kept = match is_current(&visit, name.trim()).await {
        Ok(()) => {
            policies::save(&visit.console, &visit.caller, name.trim(), &text, Location::default()).await
        }
        Err(failure) => Err(failure),
    };
    match kept {
        Ok(kept) => Ok(visit.go(&format!("/policies/{}", encoded(&kept.listed)), "saved")),
        Err(failure) => {
            let frame = visit.frame();
            let body = editor(&frame, &Edited::new(name, &text, was(&visit)), None, Some(&failure));
            let page = Page { title: "Policy", at: HERE, live: None, is_over: false, body };
            Ok(frame.answer(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// Whether what is in force is what was edited: else somebody's change would be undone unseen.
async fn is_current(visit: &Visit, name: &str) -> Result<(), Failure> {
    let Some(was) = visit.field("was") else { return Ok(()) };
    let now = match policies::show(&visit.console, &visit.caller, name).await {
        Ok(found) => mark(&found.text),
        Err(failure) if failure.kind == FailureKind::NotFound => String::new(),
        Err(failure) => return Err(failure),
    };
    if now == was {
        return Ok(());
    }
    let message = if was.is_empty() {
        format!("there is a policy \"{name}\" already: edit that, or call this one something else")
    } else {
        format!(
            "\"{name}\" was changed since you opened it: open it again in another tab, and take over what you want to keep"
        )
    };
    Err(Failure::new(FailureKind::Conflict, message))
}

/// What tells two texts apart.
fn mark(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Looks a text over, without keeping it.
pub(super) async fn check(visit: Visit) -> Result<Response, Failure> {
    let (name, text) = (visit.field("name").unwrap_or_default(), visit.field("text").unwrap_or_default());
    let text = text.replace("\r\n", "\n");
    let problems = policies::validate(&visit.console, &visit.caller, name.trim(), &text).await?;
    let differences = if problems.is_empty() {
        what_if::what_if(&visit.console, &visit.caller, name.trim(), &text).await?
    } else {
        Vec::new()
    };
    let frame = visit.frame();
    let body = editor(&frame, &Edited::new(name, &text, was(&visit)), Some((&problems, &differences)), None);
    Ok(frame.page(&Page { title: "Policy", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn ask_remove(visit: Visit) -> Result<Response, Failure> {
    let found = policies::show(&visit.console, &visit.caller, visit.part("name")).await?;
    let frame = visit.frame();
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::line(&found.name, 80)) "?" }
            p { (text::count(found.rules.len(), "policy", "policies")) " in it no longer count from the next call on. Its page keeps its versions, and can restore them." }
            form method="post" action=(frame.to(&format!("/policies/{}/remove", encoded(&found.name)))) {
                (frame.proof())
                div.actions { button.danger type="submit" autofocus { "Remove" } a.button href=(frame.to(HERE)) { "Keep it" } }
            }
        }
    };
    Ok(frame.page(&Page { title: "Remove a policy", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn remove(visit: Visit) -> Result<Response, Failure> {
    let name = visit.part("name");
    policies::remove(&visit.console, &visit.caller, name, Location::default()).await?;
    // Where it can be had again, if it is remembered.
    let is_kept = policies::history(&visit.console, &visit.caller, name, Location::default())
        .await
        .is_ok_and(|all| !all.is_empty());
    Ok(if is_kept {
        visit.go(&format!("{HERE}/{}", encoded(name)), "removed")
    } else {
        visit.go(HERE, "removed")
    })
}

async fn show(visit: &Visit, status: StatusCode, failure: Option<&Failure>) -> Result<Response, Failure> {
    let mut texts = Vec::new();
    for text in policies::list(&visit.console, &visit.caller).await? {
        let author = policies::author(&visit.console, &visit.caller, &text).await?;
        texts.push((text, author));
    }
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
        @if texts.is_empty() {
            div.panel.empty {
                h2 { "No policies are in force" }
                p { "So nobody may call anything. Write one of the usual policies below, or " a href=(frame.to("/policies/new")) { "one of your own" } "." }
            }
        }
        @for (text, author) in &texts { (listed(&frame, text, author.as_deref())) }
        (usual_form(&frame, visit, failure))
    };
    Ok(frame.answer(status, &Page { title: "Policies", at: HERE, live: None, is_over: false, body }))
}

fn listed(frame: &Frame, found: &Text, author: Option<&str>) -> Markup {
    let is_installed = [STARTER, OWNER_ADMIN].contains(&found.text.as_str());
    html! {
        section.panel {
            div.top {
                h2 { a href=(frame.to(&format!("/policies/{}", encoded(&found.name)))) { (text::line(&found.name, 80)) } @if is_installed { " " span.tag { "as installed" } } @if found.org.is_none() { " " span.tag { "all orgs" } } }
                a.button.quiet href=(frame.to(&format!("/policies/{}/remove", encoded(&found.name)))) data-dialog aria-label=(format!("Remove {}", found.name)) { "Remove" }
            }
            @if let Some(author) = author { p.sub { "Created by " (text::line(author, 80)) } }
            @if found.rules.is_empty() { p.muted { "No policy in it is in force." } }
            @for rule in &found.rules {
                p.wide {
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
                div {
                    label for="usual-caller-kind" { "Who is" }
                    select #usual-caller-kind name="caller_kind" {
                        @for kind in ["user", "session", "agent"] { option value=(kind) selected[given("caller_kind") == kind] { (kind) } }
                    }
                }
                div { label for="usual-by" { "Approved by" } input #usual-by type="text" name="by" value=(given("by")) placeholder="an administrator" autocomplete="off"; }
                button.first type="submit" { "Write" }
            }
        }
    }
}

/// What the text was that is edited.
fn was(visit: &Visit) -> &str {
    visit.field("was").unwrap_or_default()
}

fn editor(
    frame: &Frame,
    edited: &Edited<'_>,
    checked: Option<(&[Problem], &[Difference])>,
    failure: Option<&Failure>,
) -> Markup {
    let check = frame.to("/check-policy");
    let Edited { name, source, was } = edited;
    let is_new = was.is_empty();
    html! {
        div.top { div { h1 { @if name.is_empty() { "New policy" } @else { (text::line(name, 80)) } } p.sub { "Cedar; checked together with everything else that is in force" } } }
        (layout::refused(failure))
        form.panel method="post" action=(frame.to(HERE)) {
            (frame.proof())
            input type="hidden" name="was" value=(was);
            div.field {
                label for="policy-name" { "Name" }
                input #policy-name type="text" name="name" value=(name) required spellcheck="false" autocomplete="off" readonly[!is_new];
            }
            div.field {
                label for="policy-text" { "Policies" }
                textarea.code #policy-text name="text" spellcheck="false" data-check=(check) { "\n" (source) }
            }
            div.actions {
                button.first type="submit" { "Save" }
                button type="submit" formaction=(check) { "Check" }
                a.button href=(frame.to(HERE)) { "Back" }
            }
        }
        div data-region="checked" aria-live="polite" { @if let Some((problems, differences)) = checked { (thought(name, problems)) @if problems.is_empty() { (changes(&frame.who, differences)) } } }
    }
}

/// What is wrong with a text, or that nothing is.
fn thought(name: &str, problems: &[Problem]) -> Markup {
    let own = if name.trim().is_empty() { "new.cedar" } else { name.trim() };
    html! {
        @if problems.is_empty() {
            div #problems.said.good { p { "Valid together with everything else that is in force." } }
        } @else {
            div #problems.said.bad {
                @for problem in problems.iter().take(50) {
                    p {
                        @match place(&problem.place, own) {
                            Some((line, column)) => a href="#policy-text" data-goto=(format!("{line}:{column}")) { "line " (line) ", column " (column) },
                            None => (text::line(&problem.place, 120)),
                        }
                        ": " (text::phrase(&problem.message, 600)) @if let Some(help) = &problem.help { " (" (text::phrase(help, 300)) ")" }
                    }
                }
            }
        }
    }
}

/// What a text would change, before it is kept.
fn changes(you: &str, differences: &[Difference]) -> Markup {
    html! {
        section.panel {
            h2 { "What would be different" }
            @if differences.is_empty() { p.muted { "Nothing about who may call which skill or administer what, for you and those who have tokens." } }
            @if differences.iter().any(|it| it.is_admin && !it.allowed && it.caller == you) {
                div.said.warn { p { "You would lock yourself out: some of what you may administer now you may not then. At the server's machine " code { "rialto policy" } " works all the same." } }
            }
            @for it in differences.iter().take(40) {
                p {
                    @if it.allowed { span.tag.good { "may then" } } @else { span.tag.bad { "no longer" } }
                    " " b { (text::line(&it.caller, 60)) } @if it.is_admin { " administers " } @else { " calls " } code { (text::line(&it.target, 120)) }
                }
            }
            @if differences.len() > 40 { p.muted { "And " (differences.len() - 40) " more." } }
        }
    }
}

/// The line and the column, where a place is one of this text.
fn place(place: &str, own: &str) -> Option<(u32, u32)> {
    let mut pieces = place.rsplitn(3, ':');
    let (column, line, file) = (pieces.next()?.parse().ok()?, pieces.next()?.parse().ok()?, pieces.next()?);
    (file.strip_suffix(".cedar").unwrap_or(file) == own.strip_suffix(".cedar").unwrap_or(own))
        .then_some((line, column))
}

/// A text that a policy had, which can be had again.
fn earlier(frame: &Frame, name: &str, in_force: Option<&str>, at: usize, old: &PolicyVersion) -> Markup {
    html! {
        details data-key=(format!("version-{at}")) {
            summary { (old.version) " · " (old.at.strftime("%F %T UTC")) @if let Some(by) = &old.by { " by " (text::line(by, 60)) } }
            @match &old.text {
                None => p.muted { "It was taken away." },
                Some(text) => {
                    pre tabindex="0" { code { (text::visible(text, true)) } }
                    @if in_force == Some(text) { p.muted { "This is in force." } } @else {
                        form method="post" action=(frame.to(HERE)) {
                            (frame.proof())
                            input type="hidden" name="name" value=(name);
                            input type="hidden" name="text" value=(text);
                            button type="submit" { "Restore version " (old.version) }
                        }
                    }
                }
            }
        }
    }
}
