//! What every store promises, as one suite for every backend.
//!
//! ```ignore
//! rialto_testkit::store_suite!(async { Box::new(SqliteStore::in_memory(parse_card).unwrap()) });
//! ```
//!
//! makes one test per promise. The block is run for each of them and gives anything that dereferences to a store: an
//! empty one, and the suite's alone. Cards are read back with [`parse_card`].
//!
//! `store_suite!(together server = Server::start(); async { … })` makes one test of all promises instead, for stores that need
//! something which is slow to start and must end; each promise still has a store of its own.

#![expect(clippy::unwrap_used, reason = "a broken promise shall fail its test")]

mod approvals;
mod audit;
mod costs;
mod flows;
mod journal;
mod load;
mod nodes;
mod policies;
mod pushes;
mod registry;
mod relay;
mod routing;
mod session_messages;
mod shared_usage;
mod talks;
mod usage;
mod webhooks;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rialto_model::{
    agent::Agent,
    audit_event::{AuditEvent, AuditPhase, SkillInvocation},
    backing,
    call::EntryProtocol,
    card::Card,
    event::{Event, EventAside, RemoteIds},
    ids::{AgentId, ProcessId, Scope, SkillId, TaskId},
    json::Json,
    message::{Message, Part, Role},
    store::{Store, TaskAppend},
    task::{Task, TaskHead, TaskState},
};
use serde_json::Value;

pub use self::{
    approvals::*, audit::*, costs::*, flows::*, journal::*, load::*, nodes::*, policies::*, pushes::*,
    registry::*, relay::*, routing::*, session_messages::*, shared_usage::*, talks::*, usage::*, webhooks::*,
};

/// Makes one test of each promise, for the store that the block gives.
#[macro_export]
macro_rules! store_suite {
    (together $server:ident = $start:expr; $open:expr) => {
        $crate::store_suite!(@list together ($server = $start; $open));
    };
    (@list $how:ident $open:tt) => {
        $crate::store_suite!(@$how $open;
            an_agent_comes_back_as_it_was_put,
            an_agent_without_anything_optional_comes_back_too,
            what_is_deployed_comes_back_as_it_was_put,
            a_new_version_replaces_the_row,
            a_stale_version_is_a_conflict_and_changes_nothing,
            an_agent_that_is_not_there_cannot_be_replaced,
            a_url_is_taken_once_per_project,
            a_name_is_taken_once_per_project,
            a_changed_card_leaves_the_old_one_in_history,
            an_unchanged_card_leaves_no_history,
            a_removed_agent_takes_its_history_and_probes_along,
            a_token_that_was_handed_over_is_never_stored,
            an_agent_of_one_session_is_never_stored,
            probes_come_newest_first,
            old_probes_are_dropped_once_there_are_many,
            an_answered_probe_moves_the_last_sighting_and_nothing_else,
            a_probe_of_an_unknown_agent_is_dropped,
            every_change_of_the_registry_counts_once,
            tasks_probes_and_refusals_do_not_count,
            a_token_comes_back_as_it_was_put,
            a_token_is_taken_once,
            a_revoked_token_is_marked_once,
            a_tenant_is_created_once_and_removed_once,
            a_session_that_is_over_goes_when_another_begins,
            secrets_come_back_sealed_as_they_were_put,
            a_seed_is_what_the_first_one_proposed,
            nodes_are_listed_with_their_tasks,
            a_node_keeps_its_name_while_its_process_lives,
            a_node_is_told_that_it_is_drained_until_that_is_undone,
            a_drained_node_stays_drained_when_its_process_is_replaced,
            a_lost_node_is_forgotten_after_a_day,
            a_relayed_call_is_taken_once_by_its_receiver,
            events_of_a_relayed_call_are_read_in_order,
            no_event_is_added_to_a_relayed_call_that_was_removed,
            a_program_stays_with_its_holder_while_that_is_a_candidate,
            session_messages_are_read_in_order,
            counts_of_calls_add_up,
            openings_of_breakers_are_passed_on,
            session_messages_are_removed_once_they_are_of_no_use,
            an_ended_session_stays_ended,
            a_task_comes_back_as_it_was_opened,
            a_task_id_is_taken_once,
            a_task_comes_back_with_what_it_began_with,
            an_append_moves_the_head,
            events_come_back_in_the_order_they_were_appended,
            events_can_be_read_from_the_middle,
            an_append_that_expects_another_version_changes_nothing,
            an_append_to_no_task_is_a_conflict,
            of_two_appends_that_expect_the_same_version_one_wins,
            sixty_four_appends_at_once_all_land,
            a_refused_write_does_not_spoil_its_neighbours,
            a_task_is_found_by_its_remote_id,
            our_own_id_goes_before_a_remote_one,
            another_scope_sees_nothing,
            tasks_come_newest_first_and_page_by_page,
            tasks_can_be_narrowed,
            payloads_keep_every_digit,
            a_message_that_says_the_arguments_comes_back_as_it_was_said,
            the_audit_trail_comes_newest_first_and_stays_in_its_org,
            what_the_bus_announces_is_written_with_the_task,
            the_audit_trail_can_be_narrowed,
            the_audit_trail_can_be_narrowed_to_an_outcome,
            the_audit_trail_can_be_narrowed_to_administration,
            the_audit_trail_can_be_verified,
            the_beginning_of_the_audit_trail_can_be_forgotten,
            old_tasks_can_be_forgotten,
            the_audit_trail_can_be_read_forwards_over_all_orgs,
            what_was_swept_shows_as_a_gap,
            large_records_are_read_a_few_at_a_time,
            costs_are_summed_up_by_whatever_is_asked_for,
            a_task_that_asked_something_is_counted_once,
            policies_come_back_as_they_were_last_changed,
            a_policy_is_not_changed_behind_somebodys_back,
            of_two_changes_of_policies_at_once_one_wins,
            the_history_of_a_policy_says_who_changed_it,
            a_webhook_comes_back_as_it_was_put_and_begins_at_the_end_of_the_trail,
            a_webhook_is_delivered_to_by_one_at_a_time,
            only_the_holder_of_a_webhook_writes_how_far_it_is,
            a_webhook_can_be_tried_again_and_removed,
            the_load_of_an_agent_is_its_open_tasks,
            conversations_come_by_their_last_change,
            conversations_can_be_narrowed,
            a_task_is_found_by_its_message,
            a_message_is_claimed_by_one_task,
            messages_are_told_to_a_process_that_is_alone,
            tasks_of_a_process_that_is_gone_are_taken_over,
            tasks_of_a_process_at_work_are_left_alone,
            a_task_can_be_claimed,
            a_process_is_at_work_until_it_is_late_or_retires,
            a_push_comes_back_as_it_was_put,
            a_push_is_due_while_its_task_is_ahead_of_it,
            a_push_that_fails_waits_and_is_given_up,
            pushes_are_removed_with_their_token,
            bytes_are_counted_by_org,
            no_more_slots_are_given_out_than_there_are,
            an_open_task_takes_a_slot_and_counts_once,
            a_slot_whose_task_never_came_is_free_again,
            a_task_that_nobody_looks_after_takes_no_slot,
            a_play_ends_once_and_its_agent_learns_from_it,
            an_agent_is_known_by_each_type_of_work_it_did,
            what_says_nothing_about_an_agent_teaches_nothing,
            plays_whose_tasks_are_over_are_found,
            decisions_come_newest_first_with_what_became_of_them,
            decisions_can_be_narrowed,
            decisions_are_forgotten_with_their_tasks,
            what_waits_for_approval_comes_back_as_it_was_put,
            of_many_decisions_at_once_the_first_counts,
            what_waits_for_approval_can_be_narrowed,
            approvals_are_forgotten_once_they_are_settled,
            a_definition_comes_back_in_its_last_version,
            a_definition_is_not_changed_behind_somebodys_back,
            a_removed_definition_is_kept_for_its_runs,
            a_run_comes_back_with_its_steps,
            a_run_begins_once,
            only_who_took_a_run_last_writes_to_it,
            a_run_that_was_called_off_takes_no_more,
            runs_can_be_narrowed,
            a_waiting_run_is_woken_by_one_at_a_time,
            a_schedule_is_run_by_one_at_a_time,
            runs_are_forgotten_with_their_tasks,
        );
    };
    (@together ($server:ident = $start:expr; $open:expr); $($promise:ident,)+) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn every_promise_is_kept() {
            let $server = $start;
            let mut broken: Vec<&str> = Vec::new();
            $(
                let store = $open.await;
                // In a task of its own: one broken promise does not keep the others from being looked at.
                let kept = tokio::spawn(async move { $crate::store_suite::$promise(&*store).await }).await;
                if kept.is_err() {
                    broken.push(stringify!($promise));
                }
            )+
            assert!(broken.is_empty(), "broken: {broken:#?}");
        }
    };
    (@each ($open:expr); $($promise:ident,)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                let store = $open.await;
                $crate::store_suite::$promise(&*store).await;
            }
        )+
    };
    ($open:expr) => {
        $crate::store_suite!(@list each ($open));
    };
}

/// Reads the cards that this suite writes.
pub fn parse_card(text: &str) -> Result<Card, String> {
    let raw = Json::parse(text).map_err(|error| error.to_string())?;
    let value = raw.value();
    let word = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    if word(&value, "name").is_empty() {
        return Err("a card needs a name".to_owned());
    }
    let skill =
        |told: &Value| backing::skill(&word(told, "id"), &word(told, "name"), &word(told, "description"));
    let skills = value["skills"].as_array().into_iter().flatten();
    let made = backing::card(
        &word(&value, "name"),
        &word(&value, "description"),
        value["version"].as_str(),
        skills.map(skill).collect(),
    );
    Ok(Card { raw, ..made })
}

/// A card with one skill. The members' order is not alphabetical, and one number has digits to lose.
pub fn card(name: &str, description: &str) -> Arc<Card> {
    let text = format!(
        r#"{{"name":"{name}","description":"{description}","x-cost":0.10,"skills":[{{"id":"do","name":"Do"}}]}}"#
    );
    Arc::new(parse_card(&text).unwrap())
}

/// An agent with nothing optional, its name made of its slug.
pub fn agent(slug: &str) -> Agent {
    let (id, url) = (AgentId::from(format!("agt_{slug}")), format!("https://{slug}.example"));
    Agent::new(id, slug.to_owned(), url, card(slug, "does what it is told"), at(0))
}

/// A task nobody has begun.
pub fn head(id: &str) -> TaskHead {
    TaskHead {
        id: TaskId::from(id),
        scope: Scope::default(),
        caller: "ann".into(),
        door: EntryProtocol::McpHttp,
        agent: AgentId::from("agt_weather"),
        agent_url: "https://weather.example".to_owned(),
        skill: Some(SkillId::from("forecast")),
        session: format!("a2a-agt_weather-forecast-{id}").into(),
        args: Json::parse(r#"{"city":"Oslo"}"#).unwrap(),
        context: None,
        message: None,
        runner: ProcessId::NOBODY,
        state: TaskState::Submitted,
        version: 0,
        remote: RemoteIds::default(),
        created_at: at(0),
        updated_at: at(0),
    }
}

/// The far side has taken the task under this name.
pub fn accepted(remote: &str) -> Event {
    let remote = RemoteIds { task_id: Some(remote.to_owned()), context_id: Some("ctx-1".to_owned()) };
    Event::Accepted { remote, aside: EventAside::default() }
}

/// Work goes on, and this is said about it.
pub fn progress(text: &str) -> Event {
    let message = Message::new("m-1", Role::Agent, vec![Part::text(text)]);
    Event::Progress { working: true, message: Some(message), aside: EventAside::default() }
}

/// The work is done.
pub fn finished() -> Event {
    Event::Finished { message: None, aside: EventAside::default() }
}

/// What has to be appended so that `events` happen to the task.
pub fn entry(before: &TaskHead, events: Vec<Event>, at: Timestamp) -> TaskAppend {
    let mut task = Task::new(before.clone());
    for event in &events {
        assert!(task.apply(event, at), "{} cannot happen now", event.name());
    }
    TaskAppend { head: task.head, expected: before.version, events, at, audit: Vec::new() }
}

/// An announcement about a task of an org, as it stands on record: with arguments if it is the first.
pub fn announced(phase: AuditPhase, org: &str, task: &str) -> AuditEvent {
    let args = if phase == AuditPhase::PreVerb { r#"{"city":"Oslo","days":1.50}"# } else { "null" };
    let verb = SkillInvocation {
        verb: "weather.forecast".to_owned(),
        legacy_alias: "a2a_weather_forecast".to_owned(),
        org_id: org.into(),
        agent_card_id: "agt_weather".into(),
        agent_url: "https://weather.example".to_owned(),
        skill_id: "forecast".into(),
        session_id: format!("a2a-agt_weather-forecast-{task}").into(),
        args: Json::parse(args).unwrap(),
        caller: "ann".into(),
        door: None,
        trace: None,
        task_id: task.into(),
    };
    AuditEvent::new(phase, Arc::new(verb), at(0))
}

/// So many seconds after a moment that has nanoseconds to lose.
pub fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-08-01T12:00:00.123456789Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

/// Opens the task and lets the events happen to it.
async fn run(store: &dyn Store, head: &TaskHead, events: Vec<Event>) -> TaskHead {
    store.open_task(head, Vec::new()).await.unwrap();
    let entry = entry(head, events, at(1));
    let after = entry.head.clone();
    store.append(entry).await.unwrap();
    after
}
