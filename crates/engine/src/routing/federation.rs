//! Another registry, which is asked when no agent here can do some work.
//!
//! Its response are proposals: an agent of it is called only if the policies here permit the caller an external agent
//! like it, and until then it is in no list. Only the type of work, the required skills and the media types are sent; the description stays here.

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
use rialto_routing::skill_index::{SkillIndex, SkillMatch};
use tokio::sync::Mutex;

use super::{DispatchService, select_agent::RoutingSnapshot};
use crate::registry::Registration;

/// Maximum number of proposals that are used.
const MAX_PROPOSALS: usize = 10;

/// Maximum number of cached questions; one more removes all.
const MAX_CACHED_QUESTIONS: usize = 1_024;

/// Asks the other registry for agents that can do some work.
pub type Lookup =
    Box<dyn Fn(WorkDescription) -> BoxFuture<'static, Result<Vec<Proposal>, String>> + Send + Sync>;

/// An agent that the other registry proposes.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// URL of the agent.
    pub url: String,
    /// Credential for it.
    pub credential: Option<Credential>,
    /// True if private and loopback addresses may be used to reach it.
    pub allow_private: bool,
}

/// Another registry.
pub struct Mesh {
    lookup: Lookup,
    ttl: Duration,
    /// Cached responses. Locked while a request is made.
    asked: Mutex<FastMap<SearchKey, CachedProposal>>,
}

/// Scope, type of work, required skills, media types.
type SearchKey = (Scope, String, Vec<String>, Vec<String>);

/// Cached response.
#[derive(Default)]
struct CachedProposal {
    at: Option<Timestamp>,
    proposed: Vec<(Arc<Agent>, Proposal)>,
    /// Agents that were registered.
    accepted: Vec<AgentId>,
}

// === impl Mesh ===

impl Mesh {
    /// Another registry, which is asked with `lookup`; its responses are valid for `ttl`.
    pub fn new(lookup: Lookup, ttl: Duration) -> Self {
        Self { lookup, ttl, asked: Mutex::default() }
    }

    fn is_fresh(&self, asked: Option<&CachedProposal>, now: Timestamp) -> bool {
        let at = asked.and_then(|asked| asked.at);
        at.and_then(|at| at.checked_add(self.ttl).ok()).is_some_and(|until| now < until)
    }
}

// === impl DispatchService ===

impl DispatchService {
    /// Sets the other registry that is asked when no agent here can do some work. The first one counts.
    pub fn set_federation(&self, mesh: Mesh) {
        // There is one configuration, so there is no second.
        let _ = self.router.mesh.set(mesh);
    }

    /// Proposals of the other registry, if no agent here can do the work or the cached response has expired.
    pub(super) async fn proposed(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        parts: &[Part],
        is_needed: bool,
    ) -> Vec<RoutingSnapshot> {
        let Some(mesh) = self.router.mesh.get() else { return Vec::new() };
        let work_type = work.work_type.trim().to_lowercase();
        let mut required: Vec<String> =
            work.required_skills.iter().map(|item| item.trim().to_lowercase()).collect();
        required.sort_unstable();
        if work_type.is_empty() && required.is_empty() || !self.guardrails.may_share(caller, work) {
            return Vec::new();
        }
        let key = (caller.scope.clone(), work_type, required, work.input_modes.clone());
        let now = self.journal.now();
        let mut asked = mesh.asked.lock().await;
        let known = asked.get(&key);
        if !mesh.is_fresh(known, now) && (is_needed || known.is_some()) {
            let before = asked.remove(&key).unwrap_or_default();
            if asked.len() >= MAX_CACHED_QUESTIONS {
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

    /// Asks the registry, and reads the cards of the proposed agents. An agent that was registered and is not proposed any more is removed.
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
                // The cached response is used until it responds again.
                return CachedProposal { at: Some(self.journal.now()), ..before };
            }
        };
        let look = |proposal: Proposal| async move {
            let row = self.registry.preview(registration(&caller.scope, &proposal)).await;
            match row {
                Ok(row) => Some((Arc::new(row), proposal)),
                Err(error) => {
                    tracing::warn!("a proposal of the mesh cannot be used: {error}");
                    None
                }
            }
        };
        let looked = join_all(proposals.into_iter().take(MAX_PROPOSALS).map(look)).await;
        let proposed: Vec<(Arc<Agent>, Proposal)> = looked.into_iter().flatten().collect();
        let mut accepted = before.accepted;
        let mut gone = Vec::new();
        accepted.retain(|id| {
            let Some(agent) = self.registry.get(id) else { return false };
            let is_still = proposed.iter().any(|(row, _)| row.url == agent.url);
            if !is_still {
                gone.push(agent);
            }
            is_still
        });
        for agent in gone {
            if let Err(error) = self.registry.remove(&agent).await {
                tracing::warn!("agent {} of the mesh could not be let go: {error}", agent.slug);
            }
        }
        CachedProposal { at: Some(self.journal.now()), proposed, accepted }
    }

    /// A proposal that fits: registered if policy permits the caller to call it, otherwise with the reason.
    async fn consider(
        &self,
        caller: &Caller,
        work: &WorkDescription,
        parts: &[Part],
        (row, proposal): (&Arc<Agent>, &Proposal),
    ) -> Option<RoutingSnapshot> {
        if self.registry.find(&caller.scope, &row.url).is_ok() {
            // It was considered already.
            return None;
        }
        let fit = SkillIndex::new(0, vec![Arc::clone(row)]).find_matches(work, 1).best.pop()?;
        let target = fit.target();
        if let Some(why) = fit.lacks.clone() {
            return Some(RoutingSnapshot { fit, target, barred: Some((FailureKind::Invalid, why)) });
        }
        match self.resolve_target(caller, target, parts) {
            Err((target, kind, why)) => {
                let why = format!("it is proposed by the mesh ({}), and {why}", row.url);
                Some(RoutingSnapshot { fit, target, barred: Some((kind, why)) })
            }
            Ok(target) => {
                let taken = self.registry.register(registration(&caller.scope, proposal)).await;
                match taken {
                    Ok(registered) => {
                        let agent = registered.agent;
                        let fit = SkillMatch { agent: Arc::clone(&agent), ..fit };
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

/// Registration of an external agent for as long as this process lives.
fn registration(scope: &Scope, proposal: &Proposal) -> Registration {
    Registration {
        scope: scope.clone(),
        keep: RowStorage::Session,
        credential: proposal.credential.clone(),
        allow_private: proposal.allow_private,
        ..Registration::new(proposal.url.clone())
    }
}
