//! Pages of the agent registry: list, registration, refresh and removal.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_admin::{
    agents::{self, AgentQuery},
    refresh_job::{self, RefreshJob},
};
use rialto_api_types::agents::NewAgent;
use rialto_engine::registry::Refreshed;
use rialto_http_server::session::API;
use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    clock::Timestamp,
    failure::{Failure, FailureKind},
};
use rialto_policy::Action;

use super::{
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::text;

const PAGE_PATH: &str = "/agents";

/// Maximum number of cards that are fetched while the browser waits; more are fetched in the background.
const MAX_WAITED_FETCHES: usize = 20;

/// Changes that reload the list: agents, and the number of pending approvals in the menu.
const WATCHED_CHANGES: &str = "agents approvals";

/// Poll interval of the list, in milliseconds. A probe that finds nothing new changes only when an agent was last seen, which is not
/// announced as a change.
pub(super) const POLL_INTERVAL_MS: &str = "10000";

pub(super) async fn list(request: PageRequest) -> Result<Response, Failure> {
    let filter = AgentQuery {
        cursor: request.query("cursor").map(str::to_owned),
        ..read_filter(|name| request.query(name))
    };
    let page = agents::list(&request.admin, &request.caller, &filter).await?;
    let may = request.admin.check_admin(&request.caller, Action::AdminAgents);
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let body = html! {
        div.top {
            div {
                h1 { "Agents" }
                p.sub { "Registered agents" }
            }
            div.actions {
                @if may.is_ok() {
                    (refresh_form(&frame, &filter, page.total))
                    a.button.first href=(frame.url("/register")) data-dialog { "Register agent" }
                }
            }
        }
        (layout::read_only_notice(&may))
        @if page.known == 0 {
            (empty_list(&frame, may.is_ok()))
        } @else {
            (filters(&frame, &filter))
            (table(&frame, &page, &filter, now, may.is_ok()))
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.respond_ok(&PageContent { title: "Agents", at: PAGE_PATH, live, is_over: false, body }))
}

/// Filter from the fields of a form or the query.
fn read_filter<'a>(given: impl Fn(&str) -> Option<&'a str>) -> AgentQuery {
    AgentQuery {
        q: given("q").unwrap_or_default().to_owned(),
        health: given("health").and_then(agents::parse_health),
        trust: given("trust").and_then(agents::parse_trust),
        limit: None,
        cursor: None,
    }
}

fn is_filtered(filter: &AgentQuery) -> bool {
    !filter.q.trim().is_empty() || filter.health.is_some() || filter.trust.is_some()
}

/// Form that refreshes the selected agents, or else all listed agents on all pages.
fn refresh_form(frame: &PageFrame, filter: &AgentQuery, total: usize) -> Markup {
    let all = if is_filtered(filter) {
        format!("Refresh {total} matching")
    } else {
        format!("Refresh all {total}")
    };
    html! {
        form #bulk method="post" action=(frame.url("/refresh")) data-region="bulk" {
            (frame.csrf_field())
            input type="hidden" name="q" value=(filter.q);
            input type="hidden" name="health" value=(filter.health.map_or("", Health::as_str));
            input type="hidden" name="trust" value=(filter.trust.map_or("", AgentTrust::as_str));
            @if total > 0 {
                button type="submit" data-picks=(all) title="Fetches the cards of the selected agents, or of all listed agents" { (all) }
            }
        }
    }
}

pub(super) async fn new(request: PageRequest) -> Result<Response, Failure> {
    request.admin.authorize_admin(&request.caller, Action::AdminAgents).await?;
    let frame = request.frame();
    let body = register_form(&frame, &NewAgent::default(), None);
    Ok(frame.respond_ok(&PageContent {
        title: "Register an agent",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn register(request: PageRequest) -> Result<Response, Failure> {
    let text = |name| request.field(name).map(str::to_owned).filter(|text| !text.trim().is_empty());
    let new_agent = NewAgent {
        url: text("url").unwrap_or_default(),
        trust: text("trust"),
        card_path: text("card_path"),
        timeout_ms: None,
        secret: text("secret"),
        credential: None,
        allow: request.field("allow").is_some(),
    };
    match agents::register(&request.admin, &request.caller, &new_agent).await {
        Ok((registered, _)) => {
            let done = if registered.created { "registered" } else { "updated" };
            Ok(request.redirect(&format!("/agents/{}", encode_segment(&registered.agent.slug)), done))
        }
        Err(failure) => {
            let frame = request.frame();
            let body = register_form(&frame, &new_agent, Some(&failure));
            let page =
                PageContent { title: "Register an agent", at: PAGE_PATH, live: None, is_over: false, body };
            Ok(frame.respond(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

pub(super) async fn refresh(request: PageRequest) -> Result<Response, Failure> {
    let key = request.path_param("key");
    let done = match agents::refresh(&request.admin, &request.caller, key).await {
        Ok(Refreshed::Unchanged(_)) => "refreshed",
        Ok(Refreshed::Changed(..)) => "changed",
        Ok(Refreshed::Held(..)) => "held",
        Err(failure) if matches!(failure.kind, FailureKind::Denied | FailureKind::NotFound) => {
            return Err(failure);
        }
        // The error is stored with the agent.
        Err(_) => "unanswered",
    };
    Ok(request.redirect_back(&format!("/agents/{}", encode_segment(key)), done))
}

pub(super) async fn refresh_all(request: PageRequest) -> Result<Response, Failure> {
    let mut picked = request.fields("pick");
    let filter = read_filter(|name| request.field(name));
    if picked.is_empty() && is_filtered(&filter) {
        let matching = agents::matching(&request.admin, &request.caller, &filter).await?;
        picked = matching.iter().map(|agent| agent.slug.clone()).collect();
        if picked.is_empty() {
            return Ok(request.redirect_back(PAGE_PATH, "nobody"));
        }
    }
    let known = request.admin.engine().registry().agents(&request.caller.scope).len();
    if picked.len() > MAX_WAITED_FETCHES || picked.is_empty() && known > MAX_WAITED_FETCHES {
        refresh_job::start(&request.admin, &request.caller, &picked).await?;
        return Ok(request.redirect("/refresh", ""));
    }
    let (_, unanswered) = agents::refresh_all(&request.admin, &request.caller, &picked).await?;
    Ok(request.redirect_back(PAGE_PATH, if unanswered == 0 { "refreshed-all" } else { "refreshed-some" }))
}

/// Page with the progress of the last refresh in the background.
pub(super) async fn progress(request: PageRequest) -> Result<Response, Failure> {
    let job = refresh_job::latest(&request.admin, &request.caller).await?;
    let (frame, now) = (request.frame(), request.admin.engine().now());
    let is_over = job.as_ref().is_none_or(|job| job.is_over());
    let body = html! {
        div.top { div { h1 { "Refreshing agents" } p.sub { "Runs in the background" } } }
        div data-region="progress" data-often="1000" aria-live="polite" {
            @match &job {
                None => div.panel.empty { p { "No background refresh since the server started. Select agents at " a href=(frame.url(PAGE_PATH)) { "Agents" } " and refresh them." } },
                Some(job) => (refresh_progress(job, now)),
            }
        }
        div.actions {
            a.button href=(frame.url(PAGE_PATH)) { "Agents" }
            @if !is_over { a.button href=(frame.url("/refresh")) { "Reload" } }
            a.button href=(frame.url("/agents?health=unreachable")) { "Unreachable agents" }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Refreshing agents",
        at: PAGE_PATH,
        live: None,
        is_over,
        body,
    }))
}

fn refresh_progress(job: &RefreshJob, now: Timestamp) -> Markup {
    let (answered, unanswered) = job.counts();
    let done = answered + unanswered;
    html! {
        section.panel {
            label for="far" { (done) " of " (text::count_noun(job.all, "agent", "agents")) @if job.is_over() { ", done" } }
            progress #far max=(job.all.max(1)) value=(done) {}
            p { (answered) " answered, " (unanswered) " failed; started " (text::time_ago(job.started_at, now)) "." }
            @if job.is_over() && unanswered > 0 { p.muted { "The page of each agent shows its error. Servers probe it again." } }
        }
    }
}

pub(super) async fn confirm_remove(request: PageRequest) -> Result<Response, Failure> {
    let agent = agents::find(&request.admin, &request.caller, request.path_param("key")).await?;
    let frame = request.frame();
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::render_line(&agent.card.name, 80)) "?" }
            p {
                "Its " (text::count_noun(agent.card.skills.len(), "skill", "skills"))
                " can no longer be called. Its card history, its probes and the policies that apply only to it are deleted. "
                "Its active tasks are not canceled."
            }
            form method="post" action=(frame.url(&format!("/agents/{}/remove", encode_segment(&agent.slug)))) {
                (frame.csrf_field())
                div.actions {
                    button.danger type="submit" autofocus { "Remove" }
                    a.button href=(frame.url(&format!("/agents/{}", encode_segment(&agent.slug)))) { "Cancel" }
                }
            }
        }
    };
    Ok(frame.respond_ok(&PageContent {
        title: "Remove an agent",
        at: PAGE_PATH,
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn remove(request: PageRequest) -> Result<Response, Failure> {
    agents::remove(&request.admin, &request.caller, request.path_param("key")).await?;
    Ok(request.redirect(PAGE_PATH, "removed"))
}

fn empty_list(frame: &PageFrame, may_register: bool) -> Markup {
    html! {
        div.panel.empty data-region="agents" data-watch=(WATCHED_CHANGES) data-often=(POLL_INTERVAL_MS) {
            h2 { "No agents yet" }
            p { "Register an agent by its base URL. Its card lists its skills, and each skill becomes a tool." }
            @if may_register {
                p { a.button.first href=(frame.url("/register")) data-dialog { "Register an agent" } }
            } @else {
                p { "On the server's machine: " code { "rialto agents add URL --allow" } }
            }
            p.small { "To try sample agents: " code { "rialto demo" } }
        }
    }
}

fn filters(frame: &PageFrame, filter: &AgentQuery) -> Markup {
    let healths = [Health::Healthy, Health::Degraded, Health::Unreachable, Health::Unknown];
    html! {
        form.filters method="get" action=(frame.url(PAGE_PATH)) data-filter role="search" {
            div {
                label.vh for="q" { "Search agents" }
                input #q type="search" name="q" value=(filter.q) placeholder="Name, address or skill" autocomplete="off";
            }
            div {
                label.vh for="health" { "Health" }
                select #health name="health" {
                    option value="" { "Any health" }
                    @for health in healths { option value=(health) selected[filter.health == Some(health)] { (health) } }
                }
            }
            div {
                label.vh for="trust" { "Trust" }
                select #trust name="trust" {
                    option value="" { "Any trust" }
                    @for trust in [AgentTrust::External, AgentTrust::Trusted] {
                        option value=(trust) selected[filter.trust == Some(trust)] { (trust) }
                    }
                }
            }
            button type="submit" { "Search" }
        }
    }
}

fn table(
    frame: &PageFrame,
    page: &agents::AgentResults,
    filter: &AgentQuery,
    now: Timestamp,
    may: bool,
) -> Markup {
    html! {
        div.panel.flush data-region="agents" data-watch=(WATCHED_CHANGES) data-often=(POLL_INTERVAL_MS) {
            @if page.agents.is_empty() {
                div.empty { p { "No agents match. " a href=(frame.url(PAGE_PATH)) { "Show all" } } }
            } @else {
                table.cards {
                    thead { tr {
                        @if may { th.pick { input.needs-script type="checkbox" data-pick-all aria-label="Select all"; span.vh { "Select" } } }
                        th { "Agent" } th.num { "Skills" } th { "Health" } th { "Trust" } th { "Last seen" }
                        th { span.vh { "Actions" } }
                    } }
                    tbody { @for agent in &page.agents { (row(frame, agent, now, may)) } }
                }
            }
            div.pages {
                span data-count { (text::count_noun(page.total, "agent", "agents")) }
                @if filter.cursor.is_some() { a href=(frame.url(&link(filter, None))) { "First page" } }
                @if let Some(next) = &page.next {
                    a.button href=(frame.url(&link(filter, Some(next)))) rel="next" { "Next page" }
                }
            }
        }
    }
}

fn row(frame: &PageFrame, agent: &Agent, now: Timestamp, may: bool) -> Markup {
    let at = format!("/agents/{}", encode_segment(&agent.slug));
    html! {
        tr {
            @if may {
                td.pick { input type="checkbox" form="bulk" name="pick" value=(agent.slug) aria-label=(format!("Select {}", agent.slug)); }
            }
            td {
                a href=(frame.url(&at)) { b { (text::render_line(&agent.card.name, 70)) } }
                span.sub { (text::render_line(&agent.url, 90)) }
                @if agent.pending.is_some() { span.tag.warn { "card change pending" } }
            }
            td.num data-label="Skills" { (agent.card.skills.len()) }
            td data-label="Health" { (health_badge(agent.health, agent.last_error.as_deref())) }
            td data-label="Trust" { (trust_badge(agent.trust)) }
            td data-label="Last seen" {
                @match agent.last_seen_at { Some(seen) => (text::time_ago(seen, now)), None => span.muted { "never" } }
            }
            td.acts {
                @if may {
                    button.quiet type="submit" form="bulk" formaction=(frame.url(&format!("{at}/refresh")))
                        aria-label=(format!("Refresh {}", agent.slug)) { "Refresh" }
                    a.button.quiet href=(frame.url(&format!("{at}/remove"))) data-dialog aria-label=(format!("Remove {}", agent.slug)) { "Remove" }
                }
            }
        }
    }
}

/// Badge for the health of an agent, with its last error as title.
pub(super) fn health_badge(health: Health, why: Option<&str>) -> Markup {
    let tone = match health {
        Health::Healthy => "good",
        Health::Degraded => "warn",
        Health::Unreachable => "bad",
        Health::Unknown => "",
    };
    let why = why
        .filter(|_| health != Health::Healthy)
        .map(|why| text::escape_invisible(&text::truncate(why, 300).0, false).into_owned());
    html! { span class=(format!("state {tone}")) title=[why] { (health) } }
}

/// Badge for a trust level.
pub(super) fn trust_badge(trust: AgentTrust) -> Markup {
    let tone = if trust == AgentTrust::External { "tag" } else { "tag good" };
    html! { span class=(tone) { (trust) } }
}

fn link(filter: &AgentQuery, cursor: Option<&str>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let given = [
        ("q", Some(filter.q.as_str()).filter(|q| !q.is_empty())),
        ("health", filter.health.map(Health::as_str)),
        ("trust", filter.trust.map(AgentTrust::as_str)),
        ("cursor", cursor),
    ];
    for (name, value) in given.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
        query.append_pair(name, value);
    }
    format!("{PAGE_PATH}?{}", query.finish())
}

fn register_form(frame: &PageFrame, new_agent: &NewAgent, failure: Option<&Failure>) -> Markup {
    let is_trusted = new_agent.trust.as_deref() == Some("trusted");
    html! {
        div data-dialog-body {
            h1 { "Register an agent" }
            p.muted { "The agent's card is fetched now. If that fails, nothing is stored." }
            (layout::error_message(failure))
            form method="post" action=(frame.url(PAGE_PATH)) {
                (frame.csrf_field())
                div.field {
                    label for="url" { "Address" }
                    input #url type="text" inputmode="url" name="url" value=(new_agent.url) required autofocus autocomplete="off"
                        spellcheck="false" placeholder="https://agents.example.com/reviewer" aria-invalid=[failure.map(|_| "true")];
                    p.hint { "Base URL of the agent. Its card is fetched from the well-known paths below it." }
                }
                div.field {
                    label for="new-trust" { "Trust" }
                    select #new-trust name="trust" {
                        option value="external" { "external: each skill needs a policy" }
                        option value="trusted" selected[is_trusted] { "trusted: all callers may call it" }
                    }
                }
                div.field {
                    label.check { input type="checkbox" name="allow" value="yes" checked[new_agent.allow]; "Create a policy that allows all callers" }
                }
                details data-key="more" open[new_agent.card_path.is_some() || new_agent.secret.is_some()] {
                    summary { "More options" }
                    div.field {
                        label for="card-path" { "Card path" }
                        input #card-path type="text" name="card_path" value=[new_agent.card_path.as_ref()] spellcheck="false";
                        p.hint { "Path of the card, if it is not at a well-known path." }
                    }
                    div.field {
                        label for="secret" { "Secret" }
                        input #secret type="text" name="secret" value=[new_agent.secret.as_ref()] spellcheck="false" placeholder="store:NAME";
                        p.hint { "Source of the secret that is sent to the agent: env:NAME, file:PATH or store:NAME. Never enter the secret itself." }
                    }
                }
                div.actions { button.first type="submit" { "Register" } a.button href=(frame.url(PAGE_PATH)) { "Cancel" } }
            }
        }
    }
}
