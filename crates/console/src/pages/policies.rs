//! Pages of policies: list, templates, an editor that checks while typing, and earlier versions.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_admin::{
    host::PolicyHistoryEntry,
    policies::{self, PolicyDocument, PolicySelector, TEMPLATES},
    policy_preview,
};
use rialto_api_types::policies::{DecisionChange, NewPolicy};
use rialto_model::failure::{Failure, FailureKind};
use rialto_policy::{Action, OWNER_ADMIN, PolicySourceError, STARTER};

use super::{
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::text;

const PAGE_PATH: &str = "/policies";

/// Content of the policy editor.
struct PolicyEditor<'a> {
    name: &'a str,
    source: &'a str,
    /// Hash of the text that was opened; empty for a new text.
    was: &'a str,
}

// === impl PolicyEditor ===

impl<'a> PolicyEditor<'a> {
    const fn new(name: &'a str, source: &'a str, was: &'a str) -> Self {
        Self { name, source, was }
    }
}

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    show(&request, StatusCode::OK, None).await
}

pub(super) async fn add_from_template(request: PageRequest) -> Result<Response, Failure> {
    let text = |name| request.field(name).unwrap_or_default().to_owned();
    let new = NewPolicy {
        kind: text("kind"),
        target: text("target"),
        caller: text("caller"),
        caller_kind: request.field("caller_kind").and_then(super::policy_playground::parse_caller_kind),
        by: text("by"),
        ..NewPolicy::default()
    };
    match policies::add_from_template(&request.admin, &request.caller, &new).await {
        Ok(saved_policy) => {
            Ok(request.redirect(&format!("/policies/{}", encode_segment(&saved_policy.listed)), "saved"))
        }
        Err(failure) => show(&request, StatusCode::UNPROCESSABLE_ENTITY, Some(&failure)).await,
    }
}

pub(super) async fn new(request: PageRequest) -> Result<Response, Failure> {
    request.admin.authorize_admin(&request.caller, Action::AdminPolicies).await?;
    let frame = request.frame();
    let sample = "@id(\"mine\")\n@summary(\"say what it is for\")\npermit (\n    principal,\n    action == Action::\"a2a_invoke\",\n    resource is Skill\n)\nwhen { resource.tags.contains(\"public\") };\n";
    let body = editor(&frame, &PolicyEditor::new("", sample, ""), None, None);
    Ok(frame.respond_ok(&PageContent {
        title: "New policy",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn edit(request: PageRequest) -> Result<Response, Failure> {
    let name = request.path_param("name");
    let versions = policies::history(&request.admin, &request.caller, name, PolicySelector::default()).await;
    let found = match policies::show(&request.admin, &request.caller, name).await {
        Ok(found) => Some(found),
        // A removed text can be restored from its versions.
        Err(failure)
            if failure.kind == FailureKind::NotFound
                && versions.as_ref().is_ok_and(|all| !all.is_empty()) =>
        {
            None
        }
        Err(failure) => return Err(failure),
    };
    let (versions, frame) = (versions?, request.frame());
    let name = found.as_ref().map_or(name, |found| &found.name);
    let in_force = found.as_ref().map(|found| found.text.as_str());
    let body = html! {
        @match in_force {
            Some(text) => (editor(&frame, &PolicyEditor::new(name, text, &text_hash(text)), None, None)),
            None => div.top { div { h1 { (text::render_line(name, 80)) } p.sub { "Removed, not active" } } },
        }
        section.panel {
            h2 { "Versions" }
            @if versions.is_empty() { p.muted { "This is the first version." } }
            @for (at, old) in versions.iter().take(20).enumerate() { (version_details(&frame, name, in_force, at, old)) }
        }
    };
    Ok(frame.respond_ok(&PageContent { title: "Policy", at: PAGE_PATH, live: None, is_over: false, body }))
}

pub(super) async fn save(request: PageRequest) -> Result<Response, Failure> {
    let (name, text) = (request.field("name").unwrap_or_default(), request.field("text").unwrap_or_default());
    // Browsers end lines in forms with CR and LF.
    let text = text.replace("\r\n", "\n");
    let saved_policy = match check_unchanged(&request, name.trim()).await {
        Ok(()) => {
            policies::save(&request.admin, &request.caller, name.trim(), &text, PolicySelector::default())
                .await
        }
        Err(failure) => Err(failure),
    };
    match saved_policy {
        Ok(saved_policy) => {
            Ok(request.redirect(&format!("/policies/{}", encode_segment(&saved_policy.listed)), "saved"))
        }
        Err(failure) => {
            let frame = request.frame();
            let body =
                editor(&frame, &PolicyEditor::new(name, &text, opened_hash(&request)), None, Some(&failure));
            let page = PageContent { title: "Policy", at: PAGE_PATH, live: None, is_over: false, body };
            Ok(frame.respond(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// Fails if the active text is not the one that was opened, so that no change of another user is overwritten.
async fn check_unchanged(request: &PageRequest, name: &str) -> Result<(), Failure> {
    let Some(was) = request.field("was") else { return Ok(()) };
    let now = match policies::show(&request.admin, &request.caller, name).await {
        Ok(found) => text_hash(&found.text),
        Err(failure) if failure.kind == FailureKind::NotFound => String::new(),
        Err(failure) => return Err(failure),
    };
    if now == was {
        return Ok(());
    }
    let message = if was.is_empty() {
        format!("the policy \"{name}\" exists already; edit it, or choose another name")
    } else {
        format!("\"{name}\" was changed since you opened it; open it in another tab and merge your changes")
    };
    Err(Failure::new(FailureKind::Conflict, message))
}

/// Hash that tells two texts apart.
fn text_hash(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Checks a text without saving it.
pub(super) async fn check(request: PageRequest) -> Result<Response, Failure> {
    let (name, text) = (request.field("name").unwrap_or_default(), request.field("text").unwrap_or_default());
    let text = text.replace("\r\n", "\n");
    let problems = policies::validate(&request.admin, &request.caller, name.trim(), &text).await?;
    let differences = if problems.is_empty() {
        policy_preview::decision_changes(&request.admin, &request.caller, name.trim(), &text).await?
    } else {
        Vec::new()
    };
    let frame = request.frame();
    let body = editor(
        &frame,
        &PolicyEditor::new(name, &text, opened_hash(&request)),
        Some((&problems, &differences)),
        None,
    );
    Ok(frame.respond_ok(&PageContent { title: "Policy", at: PAGE_PATH, live: None, is_over: false, body }))
}

pub(super) async fn confirm_remove(request: PageRequest) -> Result<Response, Failure> {
    let found = policies::show(&request.admin, &request.caller, request.path_param("name")).await?;
    let frame = request.frame();
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::render_line(&found.name, 80)) "?" }
            p { (text::count_noun(found.rules.len(), "policy", "policies")) " in it stop applying immediately. Its versions are kept and can be restored." }
            form method="post" action=(frame.url(&format!("/policies/{}/remove", encode_segment(&found.name)))) {
                (frame.csrf_field())
                div.actions { button.danger type="submit" autofocus { "Remove" } a.button href=(frame.url(PAGE_PATH)) { "Cancel" } }
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Remove a policy",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn remove(request: PageRequest) -> Result<Response, Failure> {
    let name = request.path_param("name");
    policies::remove(&request.admin, &request.caller, name, PolicySelector::default()).await?;
    // Its page can restore it, if it has versions.
    let is_kept = policies::history(&request.admin, &request.caller, name, PolicySelector::default())
        .await
        .is_ok_and(|all| !all.is_empty());
    Ok(if is_kept {
        request.redirect(&format!("{PAGE_PATH}/{}", encode_segment(name)), "removed")
    } else {
        request.redirect(PAGE_PATH, "removed")
    })
}

async fn show(
    request: &PageRequest,
    status: StatusCode,
    failure: Option<&Failure>,
) -> Result<Response, Failure> {
    let mut texts = Vec::new();
    for text in policies::list(&request.admin, &request.caller).await? {
        let author = policies::find_author(&request.admin, &request.caller, &text).await?;
        texts.push((text, author));
    }
    let frame = request.frame();
    let body = html! {
        div.top {
            div { h1 { "Policies" } p.sub { "Cedar policies, checked when saved; changes take effect immediately" } }
            div.actions {
                a.button href=(frame.url("/policies/test")) { "Policy test" }
                a.button href=(frame.url("/policies/matrix")) { "Permission matrix" }
                a.button.first href=(frame.url("/policies/new")) { "New policy" }
            }
        }
        @if texts.is_empty() {
            div.panel.empty {
                h2 { "No active policies" }
                p { "All calls are denied. Create a policy from a template below, or " a href=(frame.url("/policies/new")) { "write one" } "." }
            }
        }
        @for (text, author) in &texts { (policy_panel(&frame, text, author.as_deref())) }
        (template_form(&frame, request, failure))
    };
    Ok(frame
        .respond(status, &PageContent { title: "Policies", at: PAGE_PATH, live: None, is_over: false, body }))
}

fn policy_panel(frame: &PageFrame, found: &PolicyDocument, author: Option<&str>) -> Markup {
    let is_installed = [STARTER, OWNER_ADMIN].contains(&found.text.as_str());
    html! {
        section.panel {
            div.top {
                h2 { a href=(frame.url(&format!("/policies/{}", encode_segment(&found.name)))) { (text::render_line(&found.name, 80)) } @if is_installed { " " span.tag { "default" } } @if found.org.is_none() { " " span.tag { "all orgs" } } }
                a.button.quiet href=(frame.url(&format!("/policies/{}/remove", encode_segment(&found.name)))) data-dialog aria-label=(format!("Remove {}", found.name)) { "Remove" }
            }
            @if let Some(author) = author { p.sub { "Created by " (text::render_line(author, 80)) } }
            @if found.rules.is_empty() { p.muted { "None of its policies is active." } }
            @for rule in &found.rules {
                p.wide {
                    span class=(if rule.effect == rialto_policy::Effect::Permit { "tag good" } else { "tag bad" }) { (rule.effect.as_str()) }
                    " " (text::render_line(&rule.summary, 300)) " " span.muted.small { (text::render_line(&rule.name, 80)) }
                }
            }
        }
    }
}

fn template_form(frame: &PageFrame, request: &PageRequest, failure: Option<&Failure>) -> Markup {
    let given = |name| request.field(name).unwrap_or_default();
    html! {
        form.panel method="post" action=(frame.url("/policies/templates")) {
            (frame.csrf_field())
            h2 { "Create a policy from a template" }
            (layout::error_message(failure))
            div.filters {
                div {
                    label for="usual-kind" { "Template" }
                    select #usual-kind name="kind" {
                        @for (kind, does, about) in TEMPLATES { option value=(kind) selected[given("kind") == kind] { (does) " (" (about) ")" } }
                    }
                }
                div { label for="usual-target" { "Target" } input #usual-target type="text" name="target" required value=(given("target")) placeholder="agent, agent.skill, tag …" autocomplete="off"; }
                div { label for="usual-caller" { "Caller" } input #usual-caller type="text" name="caller" value=(given("caller")) placeholder="all callers" autocomplete="off"; }
                div {
                    label for="usual-caller-kind" { "Caller kind" }
                    select #usual-caller-kind name="caller_kind" {
                        @for kind in ["user", "session", "agent"] { option value=(kind) selected[given("caller_kind") == kind] { (kind) } }
                    }
                }
                div { label for="usual-by" { "Approver" } input #usual-by type="text" name="by" value=(given("by")) placeholder="an administrator" autocomplete="off"; }
                button.first type="submit" { "Create" }
            }
        }
    }
}

/// Hash of the text that was opened, from the form.
fn opened_hash(request: &PageRequest) -> &str {
    request.field("was").unwrap_or_default()
}

fn editor(
    frame: &PageFrame,
    edited: &PolicyEditor<'_>,
    checked: Option<(&[PolicySourceError], &[DecisionChange])>,
    failure: Option<&Failure>,
) -> Markup {
    let check = frame.url("/check-policy");
    let PolicyEditor { name, source, was } = edited;
    let is_new = was.is_empty();
    html! {
        div.top { div { h1 { @if name.is_empty() { "New policy" } @else { (text::render_line(name, 80)) } } p.sub { "Cedar policies, checked together with all active policies" } } }
        (layout::error_message(failure))
        form.panel method="post" action=(frame.url(PAGE_PATH)) {
            (frame.csrf_field())
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
                a.button href=(frame.url(PAGE_PATH)) { "Back" }
            }
        }
        div data-region="checked" aria-live="polite" { @if let Some((problems, differences)) = checked { (check_result(name, problems)) @if problems.is_empty() { (decision_changes(&frame.caller_name, differences)) } } }
    }
}

/// Problems of a text, or a notice that it is valid.
fn check_result(name: &str, problems: &[PolicySourceError]) -> Markup {
    let own = if name.trim().is_empty() { "new.cedar" } else { name.trim() };
    html! {
        @if problems.is_empty() {
            div #problems.notice.good { p { "Valid together with all active policies." } }
        } @else {
            div #problems.notice.bad {
                @for problem in problems.iter().take(50) {
                    p {
                        @match own_position(&problem.place, own) {
                            Some((line, column)) => a href="#policy-text" data-goto=(format!("{line}:{column}")) { "line " (line) ", column " (column) },
                            None => (text::render_line(&problem.place, 120)),
                        }
                        ": " (text::render_message_line(&problem.message, 600)) @if let Some(help) = &problem.help { " (" (text::render_message_line(help, 300)) ")" }
                    }
                }
            }
        }
    }
}

/// Decisions that a text would change.
fn decision_changes(you: &str, differences: &[DecisionChange]) -> Markup {
    html! {
        section.panel {
            h2 { "Changed decisions" }
            @if differences.is_empty() { p.muted { "None, for you and all callers with tokens." } }
            @if differences.iter().any(|it| it.is_admin && !it.allowed && it.caller == you) {
                div.notice.warn { p { "You would lock yourself out: you would lose administrative permissions. On the server's machine " code { "rialto policy" } " still works." } }
            }
            @for it in differences.iter().take(40) {
                p {
                    @if it.allowed { span.tag.good { "Allowed" } } @else { span.tag.bad { "Denied" } }
                    " " b { (text::render_line(&it.caller, 60)) } @if it.is_admin { " administers " } @else { " calls " } code { (text::render_line(&it.target, 120)) }
                }
            }
            @if differences.len() > 40 { p.muted { "And " (differences.len() - 40) " more." } }
        }
    }
}

/// Line and column of a place, if it is in this text.
fn own_position(place: &str, own: &str) -> Option<(u32, u32)> {
    let mut pieces = place.rsplitn(3, ':');
    let (column, line, file) = (pieces.next()?.parse().ok()?, pieces.next()?.parse().ok()?, pieces.next()?);
    (file.strip_suffix(".cedar").unwrap_or(file) == own.strip_suffix(".cedar").unwrap_or(own))
        .then_some((line, column))
}

/// Earlier version of a text, with a button to restore it.
fn version_details(
    frame: &PageFrame,
    name: &str,
    in_force: Option<&str>,
    at: usize,
    old: &PolicyHistoryEntry,
) -> Markup {
    html! {
        details data-key=(format!("version-{at}")) {
            summary { (old.version) " · " (old.at.strftime("%F %T UTC")) @if let Some(by) = &old.by { " by " (text::render_line(by, 60)) } }
            @match &old.text {
                None => p.muted { "The text was removed." },
                Some(text) => {
                    pre tabindex="0" { code { (text::escape_invisible(text, true)) } }
                    @if in_force == Some(text) { p.muted { "This version is active." } } @else {
                        form method="post" action=(frame.url(PAGE_PATH)) {
                            (frame.csrf_field())
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
