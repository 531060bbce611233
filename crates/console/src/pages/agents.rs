//! The registry: who is there, and how they are doing.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_api_types::agents::NewAgent;
use rialto_edge::session::API;
use rialto_engine::registry::Refreshed;
use rialto_model::{
    agent::{Agent, AgentTrust, Health},
    clock::Timestamp,
    failure::{Failure, FailureKind},
};
use rialto_policy::Action;

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{
        agents::{self, Filter},
        refreshing::{self, Round},
    },
    text,
};

const HERE: &str = "/agents";

/// The cards of so many are fetched while somebody waits.
const FEW: usize = 20;

/// What has the list look again: who is there, and what the menu says.
const WATCHED: &str = "agents approvals";

/// A probe that finds nothing new changes when somebody was last seen, and nothing else: so it is looked now and then too, after so
/// many milliseconds.
pub(super) const OFTEN: &str = "10000";

pub(super) async fn list(visit: Visit) -> Result<Response, Failure> {
    let filter =
        Filter { cursor: visit.query("cursor").map(str::to_owned), ..filter_of(|name| visit.query(name)) };
    let page = agents::list(&visit.console, &visit.caller, &filter).await?;
    let may = visit.console.may(&visit.caller, Action::AdminAgents);
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let body = html! {
        div.top {
            div {
                h1 { "Agents" }
                p.sub { "Everybody whose skills can be called here" }
            }
            div.actions {
                @if may.is_ok() {
                    (bulk(&frame, &filter, page.total))
                    a.button.first href=(frame.to("/register")) data-dialog { "Register agent" }
                }
            }
        }
        (layout::barred(&may))
        @if page.known == 0 {
            (nobody(&frame, may.is_ok()))
        } @else {
            (filters(&frame, &filter))
            (table(&frame, &page, &filter, now, may.is_ok()))
        }
    };
    let live = Some(format!("{}{API}/events", frame.base));
    Ok(frame.page(&Page { title: "Agents", at: HERE, live, is_over: false, body }))
}

/// Which agents are meant, by what was filled in.
fn filter_of<'a>(given: impl Fn(&str) -> Option<&'a str>) -> Filter {
    Filter {
        q: given("q").unwrap_or_default().to_owned(),
        health: given("health").and_then(agents::health),
        trust: given("trust").and_then(agents::level),
        limit: None,
        cursor: None,
    }
}

fn is_filtered(filter: &Filter) -> bool {
    !filter.q.trim().is_empty() || filter.health.is_some() || filter.trust.is_some()
}

/// Fetches cards again: of those that are picked, else of all that are listed, on all pages.
fn bulk(frame: &Frame, filter: &Filter, total: usize) -> Markup {
    let all =
        if is_filtered(filter) { format!("Refresh these {total}") } else { format!("Refresh all {total}") };
    html! {
        form #bulk method="post" action=(frame.to("/refresh")) data-region="bulk" {
            (frame.proof())
            input type="hidden" name="q" value=(filter.q);
            input type="hidden" name="health" value=(filter.health.map_or("", Health::as_str));
            input type="hidden" name="trust" value=(filter.trust.map_or("", AgentTrust::as_str));
            @if total > 0 {
                button type="submit" data-picks=(all) title="Fetches the cards of those that are picked, or of all that are listed" { (all) }
            }
        }
    }
}

pub(super) async fn new(visit: Visit) -> Result<Response, Failure> {
    visit.console.admit(&visit.caller, Action::AdminAgents).await?;
    let frame = visit.frame();
    let body = register_form(&frame, &NewAgent::default(), None);
    Ok(frame.page(&Page { title: "Register an agent", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn register(visit: Visit) -> Result<Response, Failure> {
    let text = |name| visit.field(name).map(str::to_owned).filter(|text| !text.trim().is_empty());
    let wanted = NewAgent {
        url: text("url").unwrap_or_default(),
        trust: text("trust"),
        card_path: text("card_path"),
        timeout_ms: None,
        secret: text("secret"),
        credential: None,
        allow: visit.field("allow").is_some(),
    };
    match agents::register(&visit.console, &visit.caller, &wanted).await {
        Ok((registered, _)) => {
            let done = if registered.created { "registered" } else { "updated" };
            Ok(visit.go(&format!("/agents/{}", encoded(&registered.agent.slug)), done))
        }
        Err(failure) => {
            let frame = visit.frame();
            let body = register_form(&frame, &wanted, Some(&failure));
            let page = Page { title: "Register an agent", at: HERE, live: None, is_over: false, body };
            Ok(frame.answer(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

pub(super) async fn refresh(visit: Visit) -> Result<Response, Failure> {
    let key = visit.part("key");
    let done = match agents::refresh(&visit.console, &visit.caller, key).await {
        Ok(Refreshed::Unchanged(_)) => "refreshed",
        Ok(Refreshed::Changed(..)) => "changed",
        Ok(Refreshed::Held(..)) => "held",
        Err(failure) if matches!(failure.kind, FailureKind::Denied | FailureKind::NotFound) => {
            return Err(failure);
        }
        // What went wrong is written down with the agent.
        Err(_) => "unanswered",
    };
    Ok(visit.back(&format!("/agents/{}", encoded(key)), done))
}

pub(super) async fn refresh_all(visit: Visit) -> Result<Response, Failure> {
    let mut picked = visit.fields("pick");
    let filter = filter_of(|name| visit.field(name));
    if picked.is_empty() && is_filtered(&filter) {
        let fitting = agents::fitting(&visit.console, &visit.caller, &filter).await?;
        picked = fitting.iter().map(|agent| agent.slug.clone()).collect();
        if picked.is_empty() {
            return Ok(visit.back(HERE, "nobody"));
        }
    }
    let known = visit.console.engine().registry().agents(&visit.caller.scope).len();
    if picked.len() > FEW || picked.is_empty() && known > FEW {
        refreshing::begin(&visit.console, &visit.caller, &picked).await?;
        return Ok(visit.go("/refresh", ""));
    }
    let (_, silent) = agents::refresh_all(&visit.console, &visit.caller, &picked).await?;
    Ok(visit.back(HERE, if silent == 0 { "refreshed-all" } else { "refreshed-some" }))
}

/// How far a round of many is.
pub(super) async fn progress(visit: Visit) -> Result<Response, Failure> {
    let round = refreshing::last(&visit.console, &visit.caller).await?;
    let (frame, now) = (visit.frame(), visit.console.engine().now());
    let is_over = round.as_ref().is_none_or(|round| round.is_over());
    let body = html! {
        div.top { div { h1 { "Fetching cards" } p.sub { "It goes on whether you stay here or not" } } }
        div data-region="progress" data-often="1000" aria-live="polite" {
            @match &round {
                None => div.panel.empty { p { "No cards of many agents were fetched since the server started. Pick some at " a href=(frame.to(HERE)) { "Agents" } ", or none for all of them." } },
                Some(round) => (how_far(round, now)),
            }
        }
        div.actions {
            a.button href=(frame.to(HERE)) { "Agents" }
            @if !is_over { a.button href=(frame.to("/refresh")) { "Look again" } }
            a.button href=(frame.to("/agents?health=unreachable")) { "Those that do not answer" }
        }
    };
    Ok(frame.page(&Page { title: "Fetching cards", at: HERE, live: None, is_over, body }))
}

fn how_far(round: &Round, now: Timestamp) -> Markup {
    let (answered, silent) = round.counts();
    let done = answered + silent;
    html! {
        section.panel {
            label for="far" { (done) " of " (text::count(round.all, "agent", "agents")) @if round.is_over() { ", done" } }
            progress #far max=(round.all.max(1)) value=(done) {}
            p { (answered) " answered, " (silent) " did not; begun " (text::moment(round.begun, now)) "." }
            @if round.is_over() && silent > 0 { p.muted { "What keeps one from answering stands on its page; servers ask again by themselves." } }
        }
    }
}

pub(super) async fn ask_remove(visit: Visit) -> Result<Response, Failure> {
    let agent = agents::find(&visit.console, &visit.caller, visit.part("key")).await?;
    let frame = visit.frame();
    let body = html! {
        div data-dialog-body {
            h1 { "Remove " (text::line(&agent.card.name, 80)) "?" }
            p {
                "Its " (text::count(agent.card.skills.len(), "skill", "skills"))
                " can no longer be called, its history and probes are forgotten, and so are policies that are about nothing else. "
                "Tasks that it works on are not called off."
            }
            form method="post" action=(frame.to(&format!("/agents/{}/remove", encoded(&agent.slug)))) {
                (frame.proof())
                div.actions {
                    button.danger type="submit" autofocus { "Remove" }
                    a.button href=(frame.to(&format!("/agents/{}", encoded(&agent.slug)))) { "Keep it" }
                }
            }
        }
    };
    Ok(frame.page(&Page { title: "Remove an agent", at: HERE, live: None, is_over: false, body }))
}

pub(super) async fn remove(visit: Visit) -> Result<Response, Failure> {
    agents::remove(&visit.console, &visit.caller, visit.part("key")).await?;
    Ok(visit.go(HERE, "removed"))
}

fn nobody(frame: &Frame, may_register: bool) -> Markup {
    html! {
        div.panel.empty data-region="agents" data-watch=(WATCHED) data-often=(OFTEN) {
            h2 { "No agents yet" }
            p { "An agent is registered by its address. Its card says what it can do; each skill becomes a tool." }
            @if may_register {
                p { a.button.first href=(frame.to("/register")) data-dialog { "Register the first one" } }
            } @else {
                p { "On the server's machine: " code { "rialto agents add URL --allow" } }
            }
            p.small { "To see some at work: " code { "rialto demo" } }
        }
    }
}

fn filters(frame: &Frame, filter: &Filter) -> Markup {
    let healths = [Health::Healthy, Health::Degraded, Health::Unreachable, Health::Unknown];
    html! {
        form.filters method="get" action=(frame.to(HERE)) data-filter role="search" {
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

fn table(frame: &Frame, page: &agents::Page, filter: &Filter, now: Timestamp, may: bool) -> Markup {
    html! {
        div.panel.flush data-region="agents" data-watch=(WATCHED) data-often=(OFTEN) {
            @if page.agents.is_empty() {
                div.empty { p { "No agent fits. " a href=(frame.to(HERE)) { "Show all of them" } } }
            } @else {
                table.cards {
                    thead { tr {
                        @if may { th.pick { input.needs-script type="checkbox" data-pick-all aria-label="Pick all"; span.vh { "Pick" } } }
                        th { "Agent" } th.num { "Skills" } th { "Health" } th { "Trust" } th { "Last seen" }
                        th { span.vh { "Actions" } }
                    } }
                    tbody { @for agent in &page.agents { (row(frame, agent, now, may)) } }
                }
            }
            div.pages {
                span data-count { (text::count(page.total, "agent", "agents")) }
                @if filter.cursor.is_some() { a href=(frame.to(&link(filter, None))) { "First page" } }
                @if let Some(next) = &page.next {
                    a.button href=(frame.to(&link(filter, Some(next)))) rel="next" { "Next page" }
                }
            }
        }
    }
}

fn row(frame: &Frame, agent: &Agent, now: Timestamp, may: bool) -> Markup {
    let at = format!("/agents/{}", encoded(&agent.slug));
    html! {
        tr {
            @if may {
                td.pick { input type="checkbox" form="bulk" name="pick" value=(agent.slug) aria-label=(format!("Pick {}", agent.slug)); }
            }
            td {
                a href=(frame.to(&at)) { b { (text::line(&agent.card.name, 70)) } }
                span.sub { (text::line(&agent.url, 90)) }
                @if agent.pending.is_some() { span.tag.warn { "changed card waits" } }
            }
            td.num data-label="Skills" { (agent.card.skills.len()) }
            td data-label="Health" { (health(agent.health, agent.last_error.as_deref())) }
            td data-label="Trust" { (trust(agent.trust)) }
            td data-label="Last seen" {
                @match agent.last_seen_at { Some(seen) => (text::moment(seen, now)), None => span.muted { "never" } }
            }
            td.acts {
                @if may {
                    button.quiet type="submit" form="bulk" formaction=(frame.to(&format!("{at}/refresh")))
                        aria-label=(format!("Refresh {}", agent.slug)) { "Refresh" }
                    a.button.quiet href=(frame.to(&format!("{at}/remove"))) data-dialog aria-label=(format!("Remove {}", agent.slug)) { "Remove" }
                }
            }
        }
    }
}

/// How it is doing: a word, and a shape beside it.
pub(super) fn health(health: Health, why: Option<&str>) -> Markup {
    let tone = match health {
        Health::Healthy => "good",
        Health::Degraded => "warn",
        Health::Unreachable => "bad",
        Health::Unknown => "",
    };
    let why = why
        .filter(|_| health != Health::Healthy)
        .map(|why| text::visible(&text::cut(why, 300).0, false).into_owned());
    html! { span class=(format!("state {tone}")) title=[why] { (health) } }
}

/// How far it is trusted.
pub(super) fn trust(trust: AgentTrust) -> Markup {
    let tone = if trust == AgentTrust::External { "tag" } else { "tag good" };
    html! { span class=(tone) { (trust) } }
}

fn link(filter: &Filter, cursor: Option<&str>) -> String {
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
    format!("{HERE}?{}", query.finish())
}

fn register_form(frame: &Frame, wanted: &NewAgent, failure: Option<&Failure>) -> Markup {
    let is_trusted = wanted.trust.as_deref() == Some("trusted");
    html! {
        div data-dialog-body {
            h1 { "Register an agent" }
            p.muted { "Its card is fetched now. If that does not work, nothing is stored." }
            (layout::refused(failure))
            form method="post" action=(frame.to(HERE)) {
                (frame.proof())
                div.field {
                    label for="url" { "Address" }
                    input #url type="text" inputmode="url" name="url" value=(wanted.url) required autofocus autocomplete="off"
                        spellcheck="false" placeholder="https://agents.example.com/reviewer" aria-invalid=[failure.map(|_| "true")];
                    p.hint { "The agent's base URL; its card is looked for at the well-known places below it." }
                }
                div.field {
                    label for="new-trust" { "Trust" }
                    select #new-trust name="trust" {
                        option value="external" { "external: each skill needs a permit" }
                        option value="trusted" selected[is_trusted] { "trusted: everybody may call it" }
                    }
                }
                div.field {
                    label.check { input type="checkbox" name="allow" value="yes" checked[wanted.allow]; "Write a policy that lets everybody call it" }
                }
                details data-key="more" open[wanted.card_path.is_some() || wanted.secret.is_some()] {
                    summary { "More" }
                    div.field {
                        label for="card-path" { "Card path" }
                        input #card-path type="text" name="card_path" value=[wanted.card_path.as_ref()] spellcheck="false";
                        p.hint { "Where its card is, when not at a well-known place." }
                    }
                    div.field {
                        label for="secret" { "Secret" }
                        input #secret type="text" name="secret" value=[wanted.secret.as_ref()] spellcheck="false" placeholder="store:NAME";
                        p.hint { "Where the secret comes from that it is shown, never the secret: env:NAME, file:PATH or store:NAME." }
                    }
                }
                div.actions { button.first type="submit" { "Register" } a.button href=(frame.to(HERE)) { "Cancel" } }
            }
        }
    }
}
