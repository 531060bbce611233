//! A registry elsewhere that is asked when nobody here can do some work.
//!
//! What it answers are proposals: an agent of theirs is called only if the policies here let its caller call an external agent
//! like it, and until then it is in no list. Only the type of work, the required skills and the media types are told; what is to be done stays here.

use std::{sync::Arc, time::Duration};

use futures::future::{BoxFuture, join_all};
use rialto_model::{
    agent::{Agent, RowStorage},
    call::Caller,
    clock::Timestamp,
    credential::Credential,
    failure::FailureKind,
    ids::{AgentId, Scope},
    maps::FastMap,
    message::Part,
    routing::WorkDescription,
};
use rialto_route::skills::{Fit, SkillIndex};
use tokio::sync::Mutex;

use super::select_agent::RoutingSnapshot;
use crate::{engine::Engine, registry::Registration};

/// So many proposals are looked at.
const MOST: usize = 10;

/// So many questions are remembered; one more forgets all.
const REMEMBERED: usize = 1_024;

/// Asks elsewhere who can do some work.
pub type Lookup =
    Box<dyn Fn(WorkDescription) -> BoxFuture<'static, Result<Vec<Proposal>, String>> + Send + Sync>;

/// An agent that is known elsewhere.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Where it can be reached.
    pub url: String,
    /// What it is shown at its door.
    pub credential: Option<Credential>,
    /// Whether private and loopback addresses may be used to reach it.
    pub allow_private: bool,
}

/// A registry elsewhere.
pub struct Mesh {
    lookup: Lookup,
    ttl: Duration,
    /// What was asked, and when. Held while somebody asks.
    asked: Mutex<FastMap<SearchKey, CachedProposal>>,
}

/// Where, what type of work, what is required, what is sent.
type SearchKey = (Scope, String, Vec<String>, Vec<String>);

/// What came of a question.
#[derive(Default)]
struct CachedProposal {
    at: Option<Timestamp>,
    proposed: Vec<(Arc<Agent>, Proposal)>,
    /// Those that were taken in.
    accepted: Vec<AgentId>,
}

// === impl Mesh ===

impl Mesh {
    /// A registry that is asked by `lookup`; what it answers counts for so long.
    pub fn new(lookup: Lookup, ttl: Duration) -> Self {
        Self { lookup, ttl, asked: Mutex::default() }
    }

    fn is_fresh(&self, asked: Option<&CachedProposal>, now: Timestamp) -> bool {
        let at = asked.and_then(|asked| asked.at);
        at.and_then(|at| at.checked_add(self.ttl).ok()).is_some_and(|until| now < until)
    }
}

// === impl Engine ===

impl Engine {
    /// From now on, a registry elsewhere is asked when nobody here can do some work. The first that is joined counts.
    pub fn join(&self, mesh: Mesh) {
        // There is one configuration, so there is no second.
        let _ = self.inner().router.mesh.set(mesh);
    }

    /// Those whom a registry elsewhere proposes, when nobody here can do it or what it said before has become old.
    pub(super) async fn proposed(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        parts: &[Part],
        is_needed: bool,
    ) -> Vec<RoutingSnapshot> {
        let Some(mesh) = self.inner().router.mesh.get() else { return Vec::new() };
        let work_type = work.work_type.trim().to_lowercase();
        let mut required: Vec<String> =
            work.required_skills.iter().map(|item| item.trim().to_lowercase()).collect();
        required.sort_unstable();
        if work_type.is_empty() && required.is_empty() || !self.may_tell_elsewhere(caller, work) {
            return Vec::new();
        }
        let key = (caller.scope.clone(), work_type, required, work.input_modes.clone());
        let now = self.now();
        let mut asked = mesh.asked.lock().await;
        let known = asked.get(&key);
        if !mesh.is_fresh(known, now) && (is_needed || known.is_some()) {
            let before = asked.remove(&key).unwrap_or_default();
            if asked.len() >= REMEMBERED {
                asked.clear();
            }
            asked.insert(key.clone(), self.ask(mesh, caller, work, before).await);
        }
        let Some(known) = asked.get_mut(&key).filter(|_| is_needed) else { return Vec::new() };
        let mut seen = Vec::new();
        for (row, proposal) in &known.proposed {
            if let Some(one) = self.consider(caller, work, parts, (row, proposal)).await {
                if one.barred.is_none() {
                    known.accepted.push(one.target.agent.id.clone());
                }
                seen.push(one);
            }
        }
        seen
    }

    /// Asks, and reads the cards of those who are proposed. Who was taken in before and is proposed no more is let go.
    async fn ask(
        &self,
        mesh: &Mesh,
        caller: &Caller,
        work: &WorkDescription,
        before: CachedProposal,
    ) -> CachedProposal {
        let question = WorkDescription { description: String::new(), ..work.clone() };
        let proposals = match (mesh.lookup)(question).await {
            Ok(proposals) => proposals,
            Err(why) => {
                tracing::warn!("the registry of the mesh could not be asked: {why}");
                // What it said before holds until it answers again.
                return CachedProposal { at: Some(self.now()), ..before };
            }
        };
        let look = |proposal: Proposal| async move {
            let row = self.registry().preview(registration(&caller.scope, &proposal)).await;
            match row {
                Ok(row) => Some((Arc::new(row), proposal)),
                Err(error) => {
                    tracing::warn!("a proposal of the mesh cannot be used: {error}");
                    None
                }
            }
        };
        let looked = join_all(proposals.into_iter().take(MOST).map(look)).await;
        let proposed: Vec<(Arc<Agent>, Proposal)> = looked.into_iter().flatten().collect();
        let mut accepted = before.accepted;
        let mut gone = Vec::new();
        accepted.retain(|id| {
            let Some(agent) = self.registry().get(id) else { return false };
            let is_still = proposed.iter().any(|(row, _)| row.url == agent.url);
            if !is_still {
                gone.push(agent);
            }
            is_still
        });
        for agent in gone {
            if let Err(error) = self.registry().remove(&agent).await {
                tracing::warn!("agent {} of the mesh could not be let go: {error}", agent.slug);
            }
        }
        CachedProposal { at: Some(self.now()), proposed, accepted }
    }

    /// A proposal, if it fits: taken in if policy lets the caller call it, and else with the reason.
    async fn consider(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        parts: &[Part],
        (row, proposal): (&Arc<Agent>, &Proposal),
    ) -> Option<RoutingSnapshot> {
        if self.registry().find(&caller.scope, &row.url).is_ok() {
            // It is one of those that were looked at already.
            return None;
        }
        let fit = SkillIndex::of(0, vec![Arc::clone(row)]).fits(work, 1).best.pop()?;
        let target = fit.target();
        if let Some(why) = fit.lacks.clone() {
            return Some(RoutingSnapshot { fit, target, barred: Some((FailureKind::Invalid, why)) });
        }
        match self.aim(caller, target, parts) {
            Err((target, kind, why)) => {
                let why = format!("it is proposed by the mesh ({}), and {why}", row.url);
                Some(RoutingSnapshot { fit, target, barred: Some((kind, why)) })
            }
            Ok(target) => {
                let taken = self.registry().register(registration(&caller.scope, proposal)).await;
                match taken {
                    Ok(registered) => {
                        let agent = registered.agent;
                        let fit = Fit { agent: Arc::clone(&agent), ..fit };
                        let target = rialto_model::call::CallTarget { agent, ..target };
                        Some(RoutingSnapshot { fit, target, barred: None })
                    }
                    Err(error) => {
                        let barred = Some((FailureKind::PeerUnreachable, error.to_string()));
                        Some(RoutingSnapshot { fit, target, barred })
                    }
                }
            }
        }
    }
}

/// An external agent, known for as long as this process lives.
fn registration(scope: &Scope, proposal: &Proposal) -> Registration {
    Registration {
        scope: scope.clone(),
        keep: RowStorage::Session,
        credential: proposal.credential.clone(),
        allow_private: proposal.allow_private,
        ..Registration::new(proposal.url.clone())
    }
}
