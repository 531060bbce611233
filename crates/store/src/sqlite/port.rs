//! The store port: each verb is one write for the writer's thread, or one look with a reader.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
};

use async_trait::async_trait;
use jiff::Timestamp;
use rialto_model::{
    agent::{Agent, Keep, OldCard, Probe},
    approval::{Approval, ApprovalFilter, Decided},
    call::CallerId,
    cost::{CostQuery, CostSum},
    credential::Secret,
    event::{Event, Recorded},
    ids::{AgentId, ApprovalId, OrgId, Runner, Scope, TaskId, TokenId},
    policy::{PolicyChange, PolicySet, PolicyVersion},
    push::Push,
    routing::{
        Dispatch, DispatchFilter, PlayEnd, Posterior, Reservation, Standing as AgentStanding, StandingQuery,
        Unsettled,
    },
    store::{
        AuditFilter, Audited, CreatedTenant, Entry, MessageClaim, NumberedSessionMessage, Sealed,
        SessionMessage, SharedUsage, Store, StoreError, StoreProblem, Sweep, Swept, TalkFilter, Talks,
        TaskFilter, Token, UsageReport, Verdict,
    },
    task::TaskHead,
    verb::VerbEvent,
    webhook::{Lease, Leased, Standing, Webhook},
};

use super::{
    SqliteStore,
    agents::{self, AgentWrite},
    approvals, audit, costs, flows, message_claims, meta,
    note::Note,
    policies, presence, pushes, routing,
    secrets::{self, SecretWrite},
    session_messages, shared_usage,
    talks::{self, Left},
    tasks, tenants,
    tokens::{self, TokenWrite},
    usage, webhooks,
    writer::{Job, Write},
};

#[async_trait]
impl Store for SqliteStore {
    fn generation(&self) -> u64 {
        self.generation.get()
    }

    async fn problem(&self) -> Option<StoreProblem> {
        self.health.look();
        self.health.problem()
    }

    async fn touch(&self) -> Result<u64, StoreError> {
        self.change(Write::Touch).await
    }

    async fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        let parse = self.parse;
        self.read(move |connection| agents::all(connection, parse)).await
    }

    async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> Result<u64, StoreError> {
        if agent.keep == Keep::Session {
            tracing::debug!(agent.id = %agent.id, "agent {} belongs to this process and is not stored", agent.id);
            return Ok(self.generation());
        }
        let put = AgentWrite::Put { agent: Box::new(agent.clone()), expected };
        self.change(Write::Agent(put)).await
    }

    async fn remove_agent(&self, id: &AgentId) -> Result<Option<u64>, StoreError> {
        self.write(Write::Agent(AgentWrite::Remove(id.clone()))).await
    }

    async fn card_history(&self, id: &AgentId) -> Result<Vec<OldCard>, StoreError> {
        let id = id.clone();
        self.read(move |connection| agents::history(connection, &id)).await
    }

    async fn record_probe(&self, probe: &Probe) -> Result<(), StoreError> {
        self.write(Write::Agent(AgentWrite::Probe(probe.clone()))).await.map(drop)
    }

    async fn probes(&self, id: &AgentId, limit: usize) -> Result<Vec<Probe>, StoreError> {
        let id = id.clone();
        self.read(move |connection| agents::probes(connection, &id, limit)).await
    }

    async fn open_task(&self, head: &TaskHead, audit: Vec<VerbEvent>) -> Result<(), StoreError> {
        self.write_journal(Note::open(head, &audit)?).await
    }

    async fn begin_task(
        &self,
        head: &TaskHead,
        first: &[Event],
        audit: Vec<VerbEvent>,
    ) -> Result<(), StoreError> {
        self.write_journal(Note::begin(head, first, &audit)?).await
    }

    async fn append(&self, entry: Entry) -> Result<(), StoreError> {
        self.write_journal(Note::append(&entry)?).await
    }

    async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError> {
        let (scope, id) = (scope.clone(), id.to_owned());
        self.read_journal(move |connection| tasks::find(connection, &scope, &id)).await
    }

    async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<Recorded>, StoreError> {
        let task = task.clone();
        self.read_journal(move |connection| tasks::events(connection, &task, after)).await
    }

    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read_journal(move |connection| tasks::list(connection, &scope, &filter)).await
    }

    async fn talks(&self, scope: &Scope, filter: &TalkFilter) -> Result<Talks, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read_journal(move |connection| talks::list(connection, &scope, &filter)).await
    }

    async fn tasks_of_message(
        &self,
        scope: &Scope,
        caller: &CallerId,
        message: &str,
    ) -> Result<Vec<TaskHead>, StoreError> {
        let (scope, caller, message) = (scope.clone(), caller.clone(), message.to_owned());
        self.read(move |connection| talks::of_message(connection, &scope, &caller, &message)).await
    }

    async fn claim_message(&self, claim: &MessageClaim) -> Result<Option<MessageClaim>, StoreError> {
        let claim = claim.clone();
        self.transact(move |transaction| message_claims::claim(transaction, &claim)).await
    }

    async fn release_message(&self, claim: &MessageClaim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.transact(move |transaction| message_claims::release(transaction, &claim)).await
    }

    async fn put_session_message(&self, message: &SessionMessage) -> Result<(), StoreError> {
        let message = message.clone();
        self.transact(move |transaction| session_messages::put(transaction, &message)).await
    }

    async fn session_messages(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedSessionMessage>, StoreError> {
        self.read(move |connection| session_messages::list(connection, after, limit)).await
    }

    async fn last_session_message(&self) -> Result<u64, StoreError> {
        self.read(session_messages::last).await
    }

    async fn remove_session_message(&self, number: u64) -> Result<(), StoreError> {
        self.transact(move |transaction| session_messages::remove(transaction, number)).await
    }

    async fn is_session_ended(&self, session: &str) -> Result<bool, StoreError> {
        let session = session.to_owned();
        self.read(move |connection| session_messages::is_ended(connection, &session)).await
    }

    async fn messages(&self, runner: Runner, limit: usize) -> Result<Option<Vec<u64>>, StoreError> {
        self.read_journal(move |connection| talks::messages(connection, runner, limit)).await
    }

    async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError> {
        let report = report.clone();
        if !report.has_news() {
            return self.read(move |connection| shared_usage::read(connection, &report)).await;
        }
        self.transact(move |transaction| {
            shared_usage::add(transaction, &report)?;
            shared_usage::read(transaction, &report)
        })
        .await
    }

    async fn beat(&self, runner: Runner, until: Timestamp) -> Result<(), StoreError> {
        if let Some(readers) = &self.readers {
            self.presence.show(readers.folder(), runner);
        }
        self.transact(move |transaction| talks::beat(transaction, runner, until)).await
    }

    async fn renew(&self, runner: Runner, until: Timestamp) -> Result<bool, StoreError> {
        self.transact(move |transaction| talks::renew(transaction, runner, until)).await
    }

    async fn attend(&self, runner: Runner) -> Result<bool, StoreError> {
        Ok(self.readers.as_ref().is_some_and(|readers| self.presence.show(readers.folder(), runner)))
    }

    async fn is_at_work(&self, runner: Runner, now: Timestamp) -> Result<bool, StoreError> {
        let told = self.readers.as_ref().and_then(|readers| presence::is_alive(readers.folder(), runner));
        match told {
            Some(is_alive) => Ok(is_alive),
            None => self.read(move |connection| talks::is_at_work(connection, runner, now)).await,
        }
    }

    async fn claim(&self, task: &TaskId, runner: Runner) -> Result<(), StoreError> {
        let task = task.clone();
        self.settle().await?;
        self.transact(move |transaction| talks::claim(transaction, &task, runner)).await
    }

    async fn retire(&self, runner: Runner) -> Result<(), StoreError> {
        self.settle().await?;
        self.transact(move |transaction| talks::retire(transaction, runner)).await?;
        if let Some(readers) = &self.readers {
            self.presence.hide(readers.folder(), runner);
        }
        Ok(())
    }

    async fn take_over(
        &self,
        runner: Runner,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TaskHead>, StoreError> {
        // Those that died are found before their last notes are: whoever is found has none to make any more.
        let folder = self.readers.as_ref().map(|readers| readers.folder().to_owned());
        let gone = folder.as_deref().map(presence::gone).unwrap_or_default();
        self.ask(Job::Adopt).await?;
        let place = folder.clone();
        let taken = self.transact(move |transaction| {
            gone.iter().try_for_each(|dead| talks::retire(transaction, *dead))?;
            let gone = [gone, talks::forget_late(transaction, now)?].concat();
            // One that keeps a file and was not found dead may have notes that nobody has adopted: it is looked at next time.
            let is_shown = |other| {
                !gone.contains(&other)
                    && place.as_deref().is_some_and(|place| presence::is_known(place, other))
            };
            let taken = talks::take_over(transaction, runner, &Left { is_shown: &is_shown, limit })?;
            Ok((taken, gone))
        });
        let (taken, gone) = taken.await?;
        for runner in gone {
            folder.iter().for_each(|folder| presence::forget(folder, runner));
        }
        Ok(taken)
    }

    async fn load(&self, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError> {
        let org = org.clone();
        self.read_journal(move |connection| tasks::load(connection, &org)).await
    }

    async fn standings(&self, query: &StandingQuery) -> Result<BTreeMap<AgentId, AgentStanding>, StoreError> {
        let query = query.clone();
        self.read(move |connection| routing::standings(connection, &query)).await
    }

    async fn works(
        &self,
        org: &OrgId,
        agent: &AgentId,
        limit: usize,
    ) -> Result<Vec<(String, Posterior)>, StoreError> {
        let (org, agent) = (org.clone(), agent.clone());
        self.read(move |connection| routing::works(connection, &org, &agent, limit)).await
    }

    async fn reserve(&self, reservation: &Reservation) -> Result<bool, StoreError> {
        let reservation = reservation.clone();
        self.transact(move |transaction| routing::reserve(transaction, &reservation)).await
    }

    async fn end_play(&self, task: &TaskId, end: &PlayEnd) -> Result<bool, StoreError> {
        let (task, end) = (task.clone(), *end);
        self.transact(move |transaction| routing::end(transaction, &task, &end)).await
    }

    async fn unsettled_plays(&self, limit: usize) -> Result<Vec<Unsettled>, StoreError> {
        self.read(move |connection| routing::unsettled(connection, limit)).await
    }

    async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError> {
        let (scope, filter) = (scope.clone(), filter.clone());
        self.read(move |connection| routing::list(connection, &scope, &filter)).await
    }

    async fn audit(&self, events: Vec<VerbEvent>) -> Result<(), StoreError> {
        self.write_journal(Note::audit(&events)?).await
    }

    async fn audit_trail(&self, scope: &Scope, filter: &AuditFilter) -> Result<Vec<Audited>, StoreError> {
        let (org, filter) = (scope.org.clone(), filter.clone());
        self.read_journal(move |connection| audit::trail(connection, &org, &filter)).await
    }

    async fn audit_after(&self, record: u64, limit: usize) -> Result<Vec<Audited>, StoreError> {
        self.read(move |connection| audit::after(connection, record, limit)).await
    }

    async fn audit_end(&self) -> Result<u64, StoreError> {
        self.read(|connection| Ok(audit::end(connection)?)).await
    }

    async fn verify_audit_in_sight(&self, reached: Arc<AtomicU64>) -> Result<Verdict, StoreError> {
        self.read_journal(move |connection| audit::verify(connection, &reached)).await
    }

    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError> {
        self.read_journal(usage::org_bytes).await
    }

    async fn costs(&self, scope: &Scope, query: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        let (org, query) = (scope.org.clone(), query.clone());
        self.read_journal(move |connection| costs::sums(connection, &org, &query)).await
    }

    async fn sweep(&self, sweep: Sweep) -> Result<Swept, StoreError> {
        self.settle().await?;
        // A process that died left its last notes behind; whoever only reads along would never have them posted.
        self.ask(Job::Adopt).await?;
        self.transact(move |transaction| {
            let old = sweep.tasks_before.map_or(Ok(0), |moment| tasks::sweep(transaction, moment))?;
            let beyond = sweep.max_bytes.filter(|_| old == 0);
            let tasks = old + beyond.map_or(Ok(0), |most| tasks::sweep_beyond(transaction, most))?;
            if tasks > 0 {
                pushes::sweep(transaction)?;
            }
            sweep.tasks_before.map_or(Ok(()), |moment| routing::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| message_claims::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| approvals::sweep(transaction, moment))?;
            sweep.tasks_before.map_or(Ok(()), |moment| flows::sweep(transaction, moment))?;
            let audit = sweep.audit_before.map_or(Ok(0), |moment| audit::sweep(transaction, moment))?;
            Ok(Swept { tasks, audit })
        })
        .await
    }

    async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError> {
        self.read(tenants::all).await
    }

    async fn create_tenant(&self, tenant: &CreatedTenant) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        self.transact(move |transaction| tenants::create(transaction, &tenant)).await
    }

    async fn remove_tenant(&self, scope: &Scope) -> Result<bool, StoreError> {
        let scope = scope.clone();
        self.transact(move |transaction| tenants::remove(transaction, &scope)).await
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        self.read(tokens::all).await
    }

    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        self.write(Write::Token(TokenWrite::Add(Box::new(token.clone())))).await.map(drop)
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<Option<u64>, StoreError> {
        self.write(Write::Token(TokenWrite::Revoke { id: id.to_owned(), at })).await
    }

    async fn secrets(&self) -> Result<Vec<Sealed>, StoreError> {
        self.read(secrets::all).await
    }

    async fn put_secrets(&self, secrets: Vec<Sealed>) -> Result<u64, StoreError> {
        self.change(Write::Secret(SecretWrite::Put(secrets))).await
    }

    async fn remove_secret(&self, name: &str) -> Result<Option<u64>, StoreError> {
        self.write(Write::Secret(SecretWrite::Remove(name.to_owned()))).await
    }

    async fn seed(&self, name: &str, fresh: &Secret) -> Result<Secret, StoreError> {
        let (name, fresh) = (format!("seed {name}"), fresh.clone());
        self.transact(move |connection| Ok(Secret::from(meta::text_or(connection, &name, fresh.expose())?)))
            .await
    }

    async fn policies(&self) -> Result<PolicySet, StoreError> {
        self.read(policies::all).await
    }

    async fn change_policy(&self, change: &PolicyChange, expected: u64) -> Result<u64, StoreError> {
        let change = change.clone();
        let made = self
            .transact_change(move |transaction| policies::change(transaction, &change, expected).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn policy_history(&self, name: &str) -> Result<Vec<PolicyVersion>, StoreError> {
        let name = name.to_owned();
        self.read(move |connection| policies::history(connection, &name)).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.read(webhooks::all).await
    }

    async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError> {
        // What was acknowledged before is not news to it.
        self.settle().await?;
        let webhook = webhook.clone();
        let made = self.transact_change(move |transaction| webhooks::add(transaction, &webhook).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let id = id.to_owned();
        self.transact_change(move |transaction| webhooks::remove(transaction, &id)).await
    }

    async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let id = id.to_owned();
        self.transact_change(move |transaction| webhooks::retry(transaction, &id)).await
    }

    async fn lease_webhook(&self, id: &str, lease: &Lease) -> Result<Leased, StoreError> {
        let (id, lease) = (id.to_owned(), lease.clone());
        self.transact(move |transaction| webhooks::lease(transaction, &id, &lease)).await
    }

    async fn note_webhook(&self, id: &str, holder: &str, standing: &Standing) -> Result<bool, StoreError> {
        let (id, holder, standing) = (id.to_owned(), holder.to_owned(), standing.clone());
        self.transact(move |transaction| webhooks::note(transaction, &id, &holder, &standing)).await
    }

    async fn put_push(&self, push: &Push) -> Result<(), StoreError> {
        // The task must be there before somebody is to be told of it.
        self.settle().await?;
        let push = push.clone();
        self.transact(move |transaction| pushes::put(transaction, &push)).await
    }

    async fn pushes(&self, task: &TaskId) -> Result<Vec<Push>, StoreError> {
        let task = task.clone();
        self.read(move |connection| pushes::of_task(connection, &task)).await
    }

    async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError> {
        let (task, id) = (task.clone(), id.to_owned());
        self.transact(move |transaction| pushes::remove(transaction, &task, &id)).await
    }

    async fn due_pushes(&self, lease: &Lease, limit: usize) -> Result<Vec<Push>, StoreError> {
        self.settle().await?;
        let lease = lease.clone();
        self.transact(move |transaction| pushes::due(transaction, &lease, limit)).await
    }

    async fn note_push(&self, push: &Push, holder: &str) -> Result<bool, StoreError> {
        let (push, holder) = (push.clone(), holder.to_owned());
        self.transact(move |transaction| pushes::note(transaction, &push, &holder)).await
    }

    async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError> {
        self.read(pushes::tokens).await
    }

    async fn remove_pushes_of(&self, token: &TokenId) -> Result<u64, StoreError> {
        let token = token.clone();
        self.transact(move |transaction| pushes::remove_of(transaction, &token)).await
    }

    async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<Push>, StoreError> {
        let scope = scope.clone();
        self.read(move |connection| pushes::dead(connection, &scope, limit)).await
    }

    async fn put_approval(&self, approval: &Approval) -> Result<u64, StoreError> {
        let approval = approval.clone();
        let made = self.transact_change(move |transaction| approvals::add(transaction, &approval).map(Some));
        Ok(made.await?.unwrap_or_else(|| self.generation.get()))
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| approvals::list(connection, &filter)).await
    }

    async fn decide_approval(&self, id: &ApprovalId, decided: &Decided) -> Result<bool, StoreError> {
        let (id, decided) = (id.clone(), decided.clone());
        let made = self.transact_change(move |transaction| approvals::decide(transaction, &id, &decided));
        Ok(made.await?.is_some())
    }

    async fn settle_approval(&self, id: &ApprovalId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.transact(move |transaction| approvals::settle(transaction, &id)).await
    }
}
