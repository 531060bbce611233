//! Finds out who could do some work, and weighs them.
//!
//! Rows are read live and policy is asked about each, so an agent that the caller may not see is not mentioned, and one that it
//! may not call is never drawn for.

use std::{borrow::Cow, sync::Arc, time::Duration};

use rialto_model::{
    agent::{Agent, Health},
    call::{CallTarget, Caller, CallerKind, args_of},
    card::Skill,
    clock::Timestamp,
    cost::Cents,
    failure::{Failure, FailureKind},
    ids::{DispatchId, TaskId},
    json::Json,
    media,
    message::{Content, Part},
    routing::{
        ActivityWindow, AttemptRecord, CandidateVerdict, Dispatch, DispatchCandidate, MAX_REQUIRED_SKILLS,
        RoutingStats, RoutingStatsQuery, WorkDescription,
    },
};
use rialto_policy::{Action, Question};
use rialto_route::{
    choice::{self, Entrant, Weighed},
    skills::Fit,
};
use serde_json::json;

use crate::{
    engine::{Engine, store_failure},
    redact::redact_text,
};

/// So many candidates are written down with a decision; the best ones.
const RECORDED: usize = 100;

/// So many candidates are named when none is left.
const NAMED: usize = 20;

/// A decision that is being made.
pub(super) struct AgentSelection {
    /// The record so far, without its candidates.
    record: Dispatch,
    /// All who were considered: those that can be chosen first, best first.
    options: Vec<AgentChoice>,
    /// How many of them can be chosen.
    ranked: usize,
    /// How many of those have been tried.
    tried: usize,
    /// How many fit that were not considered at all.
    more: usize,
}

/// Who may be asked who can do some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelectionPurpose {
    /// Only the registry here: whoever asks for another registry must not be sent on to a third.
    Here,
    /// Also a registry elsewhere, if there is one.
    Elsewhere,
}

/// One who was considered.
struct AgentChoice {
    candidate: DispatchCandidate,
    target: CallTarget,
    /// Whose fault it is when it cannot be chosen.
    fault: Option<FailureKind>,
}

/// One who fits and may be seen.
pub(super) struct RoutingSnapshot {
    pub(super) fit: Fit,
    pub(super) target: CallTarget,
    /// Why it cannot be chosen, and whose fault that is.
    pub(super) barred: Option<(FailureKind, String)>,
}

// === impl Engine ===

impl Engine {
    /// Finds out who could do some work, and weighs them. Nothing is promised to anybody yet.
    pub(super) async fn decide(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        parts: &[Part],
        asks: SelectionPurpose,
    ) -> Result<AgentSelection, Failure> {
        let work = &with_kinds_of(work, parts);
        work.check().map_err(|why| Failure::new(FailureKind::Invalid, why))?;
        self.sync().await?;
        let inner = self.inner();
        let (router, now) = (&inner.router, inner.journal.now());
        let index = router.index(&inner.registry, &caller.scope).await?;
        let fits = index.fits(work, router.config.candidates);
        let more = fits.more;
        let mut seen: Vec<RoutingSnapshot> =
            fits.best.into_iter().filter_map(|fit| self.see(caller, fit, parts, now)).collect();
        if asks == SelectionPurpose::Elsewhere {
            let is_needed = seen.iter().all(|seen| seen.barred.is_some());
            seen.extend(Box::pin(self.proposed(caller, work, parts, is_needed)).await);
        }
        let query = RoutingStatsQuery {
            org: caller.scope.org.clone(),
            work_type: work.work_type.trim().to_owned(),
            agents: seen.iter().map(|seen| seen.target.agent.id.clone()).collect(),
            window: router.config.window(now),
        };
        let standings = inner.store.routing_stats(&query).await.map_err(store_failure)?;
        let standing =
            |seen: &RoutingSnapshot| standings.get(&seen.target.agent.id).copied().unwrap_or_default();
        let entrants: Vec<Entrant> = seen.iter().map(|seen| seen.entrant(standing(seen))).collect();
        let seed = router.next_seed();
        let weighed = choice::weigh(&entrants, &router.config.rules(), seed);
        let record = Dispatch {
            id: DispatchId::fresh(),
            scope: caller.scope.clone(),
            caller: caller.id.clone(),
            at: now,
            seed,
            work: WorkDescription {
                work_type: query.work_type,
                description: redact_text(&work.description),
                required_skills: work.required_skills.clone(),
                input_modes: work.input_modes.clone(),
            },
            candidates: Vec::new(),
            more: 0,
            attempts: Vec::new(),
        };
        Ok(AgentSelection::new(record, seen, &entrants, weighed, more))
    }

    /// One who fits, as its row is now and as far as the caller may know of it.
    fn see(&self, caller: &Caller, fit: Fit, parts: &[Part], now: Timestamp) -> Option<RoutingSnapshot> {
        let agent = self.registry().get(&fit.agent.id)?;
        let skill = agent.card.skill(fit.skill.id.as_str())?;
        let target = CallTarget { agent: Arc::clone(&agent), skill: Some(Arc::clone(skill)) };
        if !self.may_discover(caller, &target) {
            return None;
        }
        let (target, barred) = match self.aim(caller, target, parts) {
            Ok(target) => (target, None),
            Err((target, kind, why)) => (target, Some((kind, why))),
        };
        let until = || self.inner().breakers.blocked_until(&agent.id, now);
        let left_alone = || {
            let until = until()?;
            Some((FailureKind::Busy, format!("it could not be reached and is left alone until {until}")))
        };
        let lacks = || fit.lacks.clone().map(|why| (FailureKind::Invalid, why));
        let barred = barred.or_else(lacks).or_else(left_alone);
        Some(RoutingSnapshot { fit, target, barred })
    }

    /// What exactly would be called: the skill, or the agent as such where words are said to a skill that wants arguments.
    pub(super) fn aim(
        &self,
        caller: &Caller,
        target: CallTarget,
        parts: &[Part],
    ) -> Result<CallTarget, (CallTarget, FailureKind, String)> {
        if caller.kind == CallerKind::Agent && caller.id.as_str() == target.agent.id.as_str() {
            return Err((target, FailureKind::Denied, "it is the caller itself".to_owned()));
        }
        let refused = || format!("policy does not let {} call it", caller.id);
        let fits = parts.is_empty()
            || self.inner().schemas.may_fit(&target, &args_of(parts, target.skill.as_deref()));
        if fits {
            return match self.may_invoke(caller, &target) {
                true => Ok(target),
                false => Err((target, FailureKind::Denied, refused())),
            };
        }
        if parts.iter().any(|part| matches!(part.content, Content::Data(_))) {
            let why = "the arguments do not fit the schema of its skill".to_owned();
            return Err((target, FailureKind::Invalid, why));
        }
        let plain = CallTarget { skill: None, ..target };
        match self.may_invoke(caller, &plain) {
            true => Ok(plain),
            false => Err((plain, FailureKind::Denied, refused())),
        }
    }

    fn may_invoke(&self, caller: &Caller, target: &CallTarget) -> bool {
        let inner = self.inner();
        let row = inner.caller_agent(caller);
        let question = Question::about(caller, Action::Invoke, target).by(row.as_deref());
        inner.policies.load().decide(&question).allowed
    }
}

/// The same work, that also says what kinds of files are sent with it.
fn with_kinds_of<'a>(work: &'a WorkDescription, parts: &[Part]) -> Cow<'a, WorkDescription> {
    let mut work = Cow::Borrowed(work);
    for kind in parts.iter().filter_map(media::special) {
        if work.input_modes.len() < MAX_REQUIRED_SKILLS && !work.input_modes.contains(&kind) {
            work.to_mut().input_modes.push(kind);
        }
    }
    work
}

// === impl Config ===

impl super::Config {
    /// Which tasks count as active now.
    pub(super) fn window(&self, now: Timestamp) -> ActivityWindow {
        let since = now.checked_sub(Duration::from_secs(self.forget_after_secs));
        ActivityWindow { now, since: since.unwrap_or(Timestamp::MIN) }
    }
}

// === impl Seen ===

impl RoutingSnapshot {
    fn entrant(&self, standing: RoutingStats) -> Entrant {
        let agent = &self.target.agent;
        Entrant {
            fit: self.fit.score,
            health: agent.health,
            active: standing.active,
            cents: self.target.cost().map(Cents::as_f64),
            posterior: standing.posterior,
            barred: self.barred.as_ref().map(|(_, why)| why.clone()),
        }
    }
}

// === impl Deciding ===

impl AgentSelection {
    fn new(
        record: Dispatch,
        seen: Vec<RoutingSnapshot>,
        entrants: &[Entrant],
        weighed: Vec<Weighed>,
        more: usize,
    ) -> Self {
        let order = choice::ranked(&weighed);
        let mut place = vec![usize::MAX; seen.len()];
        for (rank, at) in order.iter().enumerate() {
            if let Some(place) = place.get_mut(*at) {
                *place = rank;
            }
        }
        let all = seen.into_iter().zip(entrants).zip(weighed).zip(place);
        let mut options: Vec<(usize, AgentChoice)> = all
            .map(|(((seen, entrant), weighed), place)| (place, AgentChoice::new(seen, entrant, weighed)))
            .collect();
        options.sort_by_key(|(place, _)| *place);
        let options = options.into_iter().map(|(_, choice)| choice).collect();
        Self { record, options, ranked: order.len(), tried: 0, more }
    }

    /// The id of the record.
    pub(super) const fn id(&self) -> &DispatchId {
        &self.record.id
    }

    /// What is to be done, as it will be on record.
    pub(super) const fn work(&mut self) -> &mut WorkDescription {
        &mut self.record.work
    }

    /// The next best, if there is one.
    pub(super) fn next(&mut self) -> Option<CallTarget> {
        if self.tried >= self.ranked {
            return None;
        }
        let next = self.options.get_mut(self.tried)?;
        self.tried += 1;
        next.candidate.verdict = CandidateVerdict::Chosen;
        Some(next.target.clone())
    }

    /// The last one that was tried cannot be chosen after all.
    pub(super) fn is_out(&mut self, kind: FailureKind, why: &str) {
        if let Some(last) = self.tried.checked_sub(1).and_then(|at| self.options.get_mut(at)) {
            last.candidate.verdict = CandidateVerdict::Out(why.to_owned());
            last.fault = Some(kind);
        }
    }

    /// The last one that was tried gets the work, as this task.
    pub(super) fn give(&mut self, target: &CallTarget, task: &TaskId) {
        self.record.attempts.push(AttemptRecord {
            agent_id: target.agent.id.clone(),
            agent: target.agent.slug.clone(),
            task_id: task.clone(),
            outcome: None,
            why_left: None,
        });
    }

    /// The last one that got the work did not get it after all.
    pub(super) fn take_back(&mut self) {
        self.record.attempts.pop();
    }

    /// The last one that got the work is left for the next.
    pub(super) fn leave(&mut self, why: &str) {
        if let Some(attempt) = self.record.attempts.last_mut() {
            attempt.why_left = Some(why.to_owned());
        }
    }

    /// The whole record.
    pub(super) fn record(&self) -> Dispatch {
        let shown = self.options.iter().take(RECORDED).map(|option| option.candidate.clone());
        let more = self.more + self.options.len().saturating_sub(RECORDED);
        Dispatch { candidates: shown.collect(), more, ..self.record.clone() }
    }

    /// Why nobody does it.
    pub(super) fn nobody(&self) -> Failure {
        let outs: Vec<(&str, &str)> = self.options.iter().filter_map(AgentChoice::out).collect();
        let named: Vec<String> =
            outs.iter().take(NAMED).map(|(agent, why)| format!("{agent}: {why}")).collect();
        let has = |kind| self.options.iter().any(|option| option.fault == Some(kind));
        let (kind, message) = if outs.is_empty() {
            let message = "no agent that you may see fits this work; `rialto agents list` and list_agents show what skills \
                           there are, and fewer required skills or other words may find one";
            (FailureKind::NotFound, message.to_owned())
        } else {
            let kinds = [FailureKind::Busy, FailureKind::PeerUnreachable, FailureKind::Denied];
            let kind = kinds.into_iter().find(|kind| has(*kind)).unwrap_or(FailureKind::Invalid);
            (kind, format!("nobody who fits this work can do it now; {}", named.join("; ")))
        };
        let candidates: Vec<_> =
            outs.iter().map(|(agent, why)| json!({ "agent": agent, "why": why })).collect();
        let mut data = json!({ "reason": "nobody-left", "work": self.record.work, "candidates": candidates });
        if kind == FailureKind::Busy {
            data["retryAfter"] = json!(1);
        }
        Failure::new(kind, message).with_data(Json::encode(&data))
    }
}

// === impl Choice ===

impl AgentChoice {
    fn new(seen: RoutingSnapshot, entrant: &Entrant, weighed: Weighed) -> Self {
        let (draw, score, verdict, fault) = match weighed.outcome {
            Ok(drawn) => (Some(drawn.draw), Some(drawn.score), CandidateVerdict::Passed, None),
            Err(why) => {
                let unreachable = entrant.health == Health::Unreachable;
                let other = if unreachable { FailureKind::PeerUnreachable } else { FailureKind::Busy };
                let fault = seen.barred.as_ref().map_or(other, |(kind, _)| *kind);
                (None, None, CandidateVerdict::Out(why), Some(fault))
            }
        };
        let agent: &Agent = &seen.target.agent;
        let skill: &Skill = &seen.fit.skill;
        let candidate = DispatchCandidate {
            agent_id: agent.id.clone(),
            agent: agent.slug.clone(),
            skill: Some(skill.id.clone()),
            capability_score: seen.fit.score,
            reasons: seen.fit.reasons,
            health: agent.health,
            health_factor: weighed.health_factor,
            active_tasks: entrant.active,
            load_factor: weighed.load_factor,
            cost_factor: weighed.cost_factor,
            posterior: weighed.posterior,
            draw,
            score,
            verdict,
        };
        Self { candidate, target: seen.target, fault }
    }

    fn out(&self) -> Option<(&str, &str)> {
        match &self.candidate.verdict {
            CandidateVerdict::Out(why) => Some((&self.candidate.agent, why)),
            CandidateVerdict::Chosen | CandidateVerdict::Passed => None,
        }
    }
}
