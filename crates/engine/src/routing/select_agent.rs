//! Selection of agents: finds the candidates for some work and scores them.
//!
//! Rows are read live and policy is asked about each, so an agent that the caller may not see is not mentioned, and one that it
//! may not call is never sampled.

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
use rialto_routing::{
    scoring::{self, ScoredCandidate, ScoringCandidate},
    skill_index::SkillMatch,
};
use serde_json::json;

use super::DispatchService;
use crate::{redact::redact_text, store_failure::store_failure};

/// Maximum number of candidates that are stored with a decision; the best ones.
const MAX_RECORDED_CANDIDATES: usize = 100;

/// Maximum number of candidates that a failure names.
const MAX_NAMED_CANDIDATES: usize = 20;

/// Decision in progress.
pub(super) struct AgentSelection {
    /// The record, without its candidates.
    record: Dispatch,
    /// All candidates: the eligible ones first, the best first.
    options: Vec<AgentChoice>,
    /// Number of eligible candidates.
    ranked: usize,
    /// Number of candidates that were tried.
    tried: usize,
    /// Number of matching agents that were not considered.
    more: usize,
}

/// Registries that may be asked for candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SelectionPurpose {
    /// Only this registry: a request of another registry must not be forwarded to a third.
    Here,
    /// Also the other registry, if there is one.
    Elsewhere,
}

/// A candidate.
struct AgentChoice {
    candidate: DispatchCandidate,
    target: CallTarget,
    /// Kind of the failure if it is not eligible.
    fault: Option<FailureKind>,
}

/// A matching agent that the caller may see.
pub(super) struct RoutingSnapshot {
    pub(super) fit: SkillMatch,
    pub(super) target: CallTarget,
    /// Kind and reason if it is not eligible.
    pub(super) barred: Option<(FailureKind, String)>,
}

// === impl DispatchService ===

impl DispatchService {
    /// Finds the candidates for some work and scores them. No slot is reserved yet.
    pub(super) async fn select(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        parts: &[Part],
        asks: SelectionPurpose,
    ) -> Result<AgentSelection, Failure> {
        let work = &with_media_types(work, parts);
        work.check().map_err(|why| Failure::new(FailureKind::Invalid, why))?;
        self.policies.sync().await?;
        let (router, now) = (&self.router, self.journal.now());
        let index = router.index(&self.registry, &caller.scope).await?;
        let fits = index.find_matches(work, router.config.candidates);
        let more = fits.more;
        let mut seen: Vec<RoutingSnapshot> =
            fits.best.into_iter().filter_map(|fit| self.snapshot(caller, fit, parts, now)).collect();
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
        let standings = self.store.routing_stats(&query).await.map_err(store_failure)?;
        let standing =
            |seen: &RoutingSnapshot| standings.get(&seen.target.agent.id).copied().unwrap_or_default();
        let entrants: Vec<ScoringCandidate> = seen.iter().map(|seen| seen.entrant(standing(seen))).collect();
        let seed = router.next_seed();
        let weighed = scoring::score_candidates(&entrants, &router.config.rules(), seed);
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

    /// Reads the current row of a matching agent; none if the caller may not see it.
    fn snapshot(
        &self,
        caller: &Caller,
        fit: SkillMatch,
        parts: &[Part],
        now: Timestamp,
    ) -> Option<RoutingSnapshot> {
        let agent = self.registry.get(&fit.agent.id)?;
        let skill = agent.card.skill(fit.skill.id.as_str())?;
        let target = CallTarget { agent: Arc::clone(&agent), skill: Some(Arc::clone(skill)) };
        if !self.policies.may_discover(caller, &target) {
            return None;
        }
        let (target, barred) = match self.resolve_target(caller, target, parts) {
            Ok(target) => (target, None),
            Err((target, kind, why)) => (target, Some((kind, why))),
        };
        let until = || self.breakers.blocked_until(&agent.id, now);
        let blocked = || {
            let until = until()?;
            Some((FailureKind::Busy, format!("it could not be reached and is left alone until {until}")))
        };
        let lacks = || fit.lacks.clone().map(|why| (FailureKind::Invalid, why));
        let barred = barred.or_else(lacks).or_else(blocked);
        Some(RoutingSnapshot { fit, target, barred })
    }

    /// The target of the call: the skill, or the agent without a skill if text is sent to a skill that requires arguments.
    pub(super) fn resolve_target(
        &self,
        caller: &Caller,
        target: CallTarget,
        parts: &[Part],
    ) -> Result<CallTarget, (CallTarget, FailureKind, String)> {
        if caller.kind == CallerKind::Agent && caller.id.as_str() == target.agent.id.as_str() {
            return Err((target, FailureKind::Denied, "it is the caller itself".to_owned()));
        }
        let refused = || format!("policy does not let {} call it", caller.id);
        let fits =
            parts.is_empty() || self.schemas.may_fit(&target, &args_of(parts, target.skill.as_deref()));
        if fits {
            return match self.policies.may_invoke(caller, &target) {
                true => Ok(target),
                false => Err((target, FailureKind::Denied, refused())),
            };
        }
        if parts.iter().any(|part| matches!(part.content, Content::Data(_))) {
            let why = "the arguments do not fit the schema of its skill".to_owned();
            return Err((target, FailureKind::Invalid, why));
        }
        let plain = CallTarget { skill: None, ..target };
        match self.policies.may_invoke(caller, &plain) {
            true => Ok(plain),
            false => Err((plain, FailureKind::Denied, refused())),
        }
    }
}

/// Adds the media types of the parts to the work.
fn with_media_types<'a>(work: &'a WorkDescription, parts: &[Part]) -> Cow<'a, WorkDescription> {
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
    /// Time window of the tasks that count as active.
    pub(super) fn window(&self, now: Timestamp) -> ActivityWindow {
        let since = now.checked_sub(Duration::from_secs(self.forget_after_secs));
        ActivityWindow { now, since: since.unwrap_or(Timestamp::MIN) }
    }
}

// === impl RoutingSnapshot ===

impl RoutingSnapshot {
    fn entrant(&self, standing: RoutingStats) -> ScoringCandidate {
        let agent = &self.target.agent;
        ScoringCandidate {
            fit: self.fit.score,
            health: agent.health,
            active: standing.active,
            cents: self.target.cost().map(Cents::as_f64),
            posterior: standing.posterior,
            excluded: self.barred.as_ref().map(|(_, why)| why.clone()),
        }
    }
}

// === impl AgentSelection ===

impl AgentSelection {
    fn new(
        record: Dispatch,
        seen: Vec<RoutingSnapshot>,
        entrants: &[ScoringCandidate],
        weighed: Vec<ScoredCandidate>,
        more: usize,
    ) -> Self {
        let order = scoring::rank(&weighed);
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

    /// Id of the record.
    pub(super) const fn id(&self) -> &DispatchId {
        &self.record.id
    }

    /// The work, as it will be recorded.
    pub(super) const fn work(&mut self) -> &mut WorkDescription {
        &mut self.record.work
    }

    /// Takes the next best candidate, if there is one.
    pub(super) fn next(&mut self) -> Option<CallTarget> {
        if self.tried >= self.ranked {
            return None;
        }
        let next = self.options.get_mut(self.tried)?;
        self.tried += 1;
        next.candidate.verdict = CandidateVerdict::Chosen;
        Some(next.target.clone())
    }

    /// Marks the candidate that was tried last as not eligible.
    pub(super) fn exclude_last(&mut self, kind: FailureKind, why: &str) {
        if let Some(last) = self.tried.checked_sub(1).and_then(|at| self.options.get_mut(at)) {
            last.candidate.verdict = CandidateVerdict::Out(why.to_owned());
            last.fault = Some(kind);
        }
    }

    /// Records an attempt with the candidate that was tried last.
    pub(super) fn record_attempt(&mut self, target: &CallTarget, task: &TaskId) {
        self.record.attempts.push(AttemptRecord {
            agent_id: target.agent.id.clone(),
            agent: target.agent.slug.clone(),
            task_id: task.clone(),
            outcome: None,
            why_left: None,
        });
    }

    /// Removes the last attempt.
    pub(super) fn undo_attempt(&mut self) {
        self.record.attempts.pop();
    }

    /// Records why the last attempt failed.
    pub(super) fn fail_attempt(&mut self, why: &str) {
        if let Some(attempt) = self.record.attempts.last_mut() {
            attempt.why_left = Some(why.to_owned());
        }
    }

    /// The complete record.
    pub(super) fn record(&self) -> Dispatch {
        let shown = self.options.iter().take(MAX_RECORDED_CANDIDATES).map(|option| option.candidate.clone());
        let more = self.more + self.options.len().saturating_sub(MAX_RECORDED_CANDIDATES);
        Dispatch { candidates: shown.collect(), more, ..self.record.clone() }
    }

    /// Failure when no candidate is left.
    pub(super) fn no_candidate(&self) -> Failure {
        let outs: Vec<(&str, &str)> = self.options.iter().filter_map(AgentChoice::out).collect();
        let named: Vec<String> =
            outs.iter().take(MAX_NAMED_CANDIDATES).map(|(agent, why)| format!("{agent}: {why}")).collect();
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

// === impl AgentChoice ===

impl AgentChoice {
    fn new(seen: RoutingSnapshot, entrant: &ScoringCandidate, weighed: ScoredCandidate) -> Self {
        let (draw, score, verdict, fault) = match weighed.outcome {
            Ok(drawn) => (Some(drawn.value), Some(drawn.score), CandidateVerdict::Passed, None),
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
