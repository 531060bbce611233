//! The store port: each verb is one statement, one transaction, or one line for the journal.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
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
        SessionMessage, SharedUsage, Store, StoreError, Sweep, Swept, TalkFilter, Talks, TaskFilter, Token,
        UsageReport, Verdict,
    },
    task::TaskHead,
    verb::VerbEvent,
    webhook::{Lease, Leased, Standing, Webhook},
};

use super::{
    PostgresStore, agents, approvals, audit, begin, costs, flows, journal::Line, leases, message_claims,
    policies, pushes, routing, secrets, session_messages, shared_usage, talks, tasks, tenants, tokens, usage,
    webhooks,
};

#[async_trait]
impl Store for PostgresStore {
    fn generation(&self) -> u64 {
        self.generation.get()
    }

    async fn touch(&self) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    async fn agents(&self) -> Result<Vec<Agent>, StoreError> {
        Ok(agents::all(&self.client().await?, self.parse).await?)
    }

    async fn put_agent(&self, agent: &Agent, expected: Option<u64>) -> Result<u64, StoreError> {
        if agent.keep == Keep::Session {
            tracing::debug!(agent.id = %agent.id, "agent {} belongs to this process and is not stored", agent.id);
            return Ok(self.generation());
        }
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        agents::put(&transaction, agent, expected).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    async fn remove_agent(&self, id: &AgentId) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let was_there = agents::remove(&transaction, id).await?;
        let made = self.commit(transaction, was_there).await?;
        self.spread(&client, made).await;
        Ok(made)
    }

    async fn card_history(&self, id: &AgentId) -> Result<Vec<OldCard>, StoreError> {
        Ok(agents::history(&self.client().await?, id).await?)
    }

    async fn record_probe(&self, probe: &Probe) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        agents::add_probe(&transaction, probe).await?;
        self.commit(transaction, false).await.map(drop)
    }

    async fn probes(&self, id: &AgentId, limit: usize) -> Result<Vec<Probe>, StoreError> {
        Ok(agents::probes(&self.client().await?, id, limit).await?)
    }

    async fn open_task(&self, head: &TaskHead, audit: Vec<VerbEvent>) -> Result<(), StoreError> {
        self.begin_task(head, &[], audit).await
    }

    async fn begin_task(
        &self,
        head: &TaskHead,
        first: &[Event],
        audit: Vec<VerbEvent>,
    ) -> Result<(), StoreError> {
        let (head, at, events) = (head.clone(), head.updated_at, first.to_vec());
        self.journal.write(Line::Open(Box::new(Entry { head, expected: 0, events, at, audit }))).await
    }

    async fn append(&self, entry: Entry) -> Result<(), StoreError> {
        self.journal.write(Line::Append(Box::new(entry))).await
    }

    async fn task(&self, scope: &Scope, id: &str) -> Result<Option<TaskHead>, StoreError> {
        Ok(tasks::find(&self.client().await?, scope, id).await?)
    }

    async fn events(&self, task: &TaskId, after: u64) -> Result<Vec<Recorded>, StoreError> {
        Ok(tasks::events(&self.client().await?, task, after).await?)
    }

    async fn tasks(&self, scope: &Scope, filter: &TaskFilter) -> Result<Vec<TaskHead>, StoreError> {
        Ok(tasks::list(&self.client().await?, scope, filter).await?)
    }

    async fn talks(&self, scope: &Scope, filter: &TalkFilter) -> Result<Talks, StoreError> {
        Ok(talks::list(&self.client().await?, scope, filter).await?)
    }

    async fn tasks_of_message(
        &self,
        scope: &Scope,
        caller: &CallerId,
        message: &str,
    ) -> Result<Vec<TaskHead>, StoreError> {
        Ok(talks::of_message(&self.client().await?, scope, caller, message).await?)
    }

    async fn claim_message(&self, claim: &MessageClaim) -> Result<Option<MessageClaim>, StoreError> {
        self.journal.claim(claim.clone()).await
    }

    async fn release_message(&self, claim: &MessageClaim) -> Result<(), StoreError> {
        Ok(message_claims::release(&self.client().await?, claim).await?)
    }

    fn lease(&self) -> Duration {
        leases::LEASE
    }

    fn sees_deaths(&self) -> bool {
        false
    }

    async fn put_session_message(&self, message: &SessionMessage) -> Result<(), StoreError> {
        Ok(session_messages::put(&self.client().await?, message).await?)
    }

    async fn session_messages(
        &self,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NumberedSessionMessage>, StoreError> {
        Ok(session_messages::list(&self.client().await?, after, limit).await?)
    }

    async fn last_session_message(&self) -> Result<u64, StoreError> {
        Ok(session_messages::last(&self.client().await?).await?)
    }

    async fn remove_session_message(&self, number: u64) -> Result<(), StoreError> {
        Ok(session_messages::remove(&self.client().await?, number).await?)
    }

    async fn is_session_ended(&self, session: &str) -> Result<bool, StoreError> {
        Ok(session_messages::is_ended(&self.client().await?, session).await?)
    }

    async fn share_usage(&self, report: &UsageReport) -> Result<SharedUsage, StoreError> {
        let mut client = self.client().await?;
        if report.has_news() {
            let transaction = begin(&mut client).await?;
            shared_usage::add(&transaction, report).await?;
            self.commit(transaction, false).await?;
        }
        Ok(shared_usage::read(&client, report).await?)
    }

    async fn beat(&self, runner: Runner, until: Timestamp) -> Result<(), StoreError> {
        self.leases.add_own(runner);
        Ok(talks::beat(&self.client().await?, runner, self.clock.to_server_time(until)).await?)
    }

    async fn renew(&self, runner: Runner, until: Timestamp) -> Result<bool, StoreError> {
        Ok(self.leases.renew(runner, self.clock.to_server_time(until)).await?)
    }

    async fn is_at_work(&self, runner: Runner, now: Timestamp) -> Result<bool, StoreError> {
        Ok(talks::is_at_work(&self.client().await?, runner, self.clock.to_server_time(now)).await?)
    }

    async fn claim(&self, task: &TaskId, runner: Runner) -> Result<(), StoreError> {
        Ok(talks::claim(&self.client().await?, task, runner).await?)
    }

    async fn retire(&self, runner: Runner) -> Result<(), StoreError> {
        Ok(talks::retire(&self.client().await?, runner).await?)
    }

    async fn take_over(
        &self,
        runner: Runner,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<TaskHead>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let taken = talks::take_over(&transaction, runner, self.clock.to_server_time(now), limit).await?;
        self.commit(transaction, false).await?;
        Ok(taken)
    }

    async fn load(&self, org: &OrgId) -> Result<BTreeMap<AgentId, u64>, StoreError> {
        Ok(tasks::load(&self.client().await?, org).await?)
    }

    async fn standings(&self, query: &StandingQuery) -> Result<BTreeMap<AgentId, AgentStanding>, StoreError> {
        Ok(routing::standings(&self.client().await?, query).await?)
    }

    async fn works(
        &self,
        org: &OrgId,
        agent: &AgentId,
        limit: usize,
    ) -> Result<Vec<(String, Posterior)>, StoreError> {
        Ok(routing::works(&self.client().await?, org, agent, limit).await?)
    }

    async fn reserve(&self, reservation: &Reservation) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_taken = routing::reserve(&transaction, reservation).await?;
        self.commit(transaction, false).await?;
        Ok(is_taken)
    }

    async fn end_play(&self, task: &TaskId, end: &PlayEnd) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_news = routing::end(&transaction, task, end).await?;
        self.commit(transaction, false).await?;
        Ok(is_news)
    }

    async fn unsettled_plays(&self, limit: usize) -> Result<Vec<Unsettled>, StoreError> {
        Ok(routing::unsettled(&self.client().await?, limit).await?)
    }

    async fn dispatches(&self, scope: &Scope, filter: &DispatchFilter) -> Result<Vec<Dispatch>, StoreError> {
        Ok(routing::list(&self.client().await?, scope, filter).await?)
    }

    async fn audit(&self, events: Vec<VerbEvent>) -> Result<(), StoreError> {
        self.journal.write(Line::Audit(events)).await
    }

    async fn audit_trail(&self, scope: &Scope, filter: &AuditFilter) -> Result<Vec<Audited>, StoreError> {
        Ok(audit::trail(&self.client().await?, &scope.org, filter).await?)
    }

    async fn audit_after(&self, record: u64, limit: usize) -> Result<Vec<Audited>, StoreError> {
        Ok(audit::after(&self.client().await?, record, limit).await?)
    }

    async fn audit_end(&self) -> Result<u64, StoreError> {
        Ok(audit::end(&self.client().await?).await?)
    }

    async fn verify_audit_in_sight(&self, reached: Arc<AtomicU64>) -> Result<Verdict, StoreError> {
        let mut client = self.client().await?;
        let reading = client.snapshot().await?;
        let verdict = audit::verify(&reading, &reached).await?;
        // Ended here and now, so that it holds up nobody.
        reading.commit().await?;
        Ok(verdict)
    }

    async fn org_bytes(&self) -> Result<BTreeMap<OrgId, u64>, StoreError> {
        Ok(usage::org_bytes(&self.client().await?).await?)
    }

    async fn costs(&self, scope: &Scope, query: &CostQuery) -> Result<Vec<CostSum>, StoreError> {
        Ok(costs::sums(&self.client().await?, &scope.org, query).await?)
    }

    async fn sweep(&self, sweep: Sweep) -> Result<Swept, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let mut swept = Swept::default();
        if let Some(moment) = sweep.tasks_before {
            swept.tasks = tasks::sweep(&transaction, moment).await?;
            if swept.tasks > 0 {
                pushes::sweep(&transaction).await?;
            }
            routing::sweep(&transaction, moment).await?;
            message_claims::sweep(&transaction, moment).await?;
            approvals::sweep(&transaction, moment).await?;
            flows::sweep(&transaction, moment).await?;
        }
        if let Some(moment) = sweep.audit_before {
            swept.audit = audit::sweep(&transaction, moment).await?;
        }
        self.commit(transaction, false).await?;
        Ok(swept)
    }

    async fn tenants(&self) -> Result<Vec<CreatedTenant>, StoreError> {
        Ok(tenants::all(&self.client().await?).await?)
    }

    async fn create_tenant(&self, tenant: &CreatedTenant) -> Result<bool, StoreError> {
        Ok(tenants::create(&self.client().await?, tenant).await?)
    }

    async fn remove_tenant(&self, scope: &Scope) -> Result<bool, StoreError> {
        Ok(tenants::remove(&self.client().await?, scope).await?)
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        Ok(tokens::all(&self.client().await?).await?)
    }

    async fn put_token(&self, token: &Token) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        tokens::add(&transaction, token).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(())
    }

    async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_revoked = tokens::revoke(&transaction, id, at).await?;
        let made = self.commit(transaction, is_revoked).await?;
        self.spread(&client, made).await;
        Ok(made)
    }

    async fn secrets(&self) -> Result<Vec<Sealed>, StoreError> {
        Ok(secrets::all(&self.client().await?).await?)
    }

    async fn put_secrets(&self, secrets: Vec<Sealed>) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        secrets::put(&transaction, &secrets).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    async fn remove_secret(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let was_there = secrets::remove(&transaction, name).await?;
        let made = self.commit(transaction, was_there).await?;
        self.spread(&client, made).await;
        Ok(made)
    }

    async fn seed(&self, name: &str, fresh: &Secret) -> Result<Secret, StoreError> {
        Ok(secrets::seed(&self.client().await?, name, fresh).await?)
    }

    async fn policies(&self) -> Result<PolicySet, StoreError> {
        Ok(policies::all(&self.client().await?).await?)
    }

    async fn change_policy(&self, change: &PolicyChange, expected: u64) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        policies::change(&transaction, change, expected).await?;
        let made = self.commit_change(transaction).await?;
        self.spread(&client, Some(made)).await;
        Ok(made)
    }

    async fn policy_history(&self, name: &str) -> Result<Vec<PolicyVersion>, StoreError> {
        Ok(policies::history(&self.client().await?, name).await?)
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        Ok(webhooks::all(&self.client().await?).await?)
    }

    async fn put_webhook(&self, webhook: &Webhook) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        webhooks::add(&transaction, webhook).await?;
        self.commit_change(transaction).await
    }

    async fn remove_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let was_there = webhooks::remove(&transaction, id).await?;
        self.commit(transaction, was_there).await
    }

    async fn retry_webhook(&self, id: &str) -> Result<Option<u64>, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let is_there = webhooks::retry(&transaction, id).await?;
        self.commit(transaction, is_there).await
    }

    async fn lease_webhook(&self, id: &str, lease: &Lease) -> Result<Leased, StoreError> {
        Ok(webhooks::lease(&self.client().await?, id, lease).await?)
    }

    async fn note_webhook(&self, id: &str, holder: &str, standing: &Standing) -> Result<bool, StoreError> {
        Ok(webhooks::note(&self.client().await?, id, holder, standing).await?)
    }

    async fn put_push(&self, push: &Push) -> Result<(), StoreError> {
        Ok(pushes::put(&self.client().await?, push).await?)
    }

    async fn pushes(&self, task: &TaskId) -> Result<Vec<Push>, StoreError> {
        Ok(pushes::of_task(&self.client().await?, task).await?)
    }

    async fn remove_push(&self, task: &TaskId, id: &str) -> Result<bool, StoreError> {
        Ok(pushes::remove(&self.client().await?, task, id).await?)
    }

    async fn due_pushes(&self, lease: &Lease, limit: usize) -> Result<Vec<Push>, StoreError> {
        Ok(pushes::due(&self.client().await?, lease, limit).await?)
    }

    async fn note_push(&self, push: &Push, holder: &str) -> Result<bool, StoreError> {
        Ok(pushes::note(&self.client().await?, push, holder).await?)
    }

    async fn push_tokens(&self) -> Result<Vec<TokenId>, StoreError> {
        Ok(pushes::tokens(&self.client().await?).await?)
    }

    async fn remove_pushes_of(&self, token: &TokenId) -> Result<u64, StoreError> {
        Ok(pushes::remove_of(&self.client().await?, token).await?)
    }

    async fn dead_pushes(&self, scope: &Scope, limit: usize) -> Result<Vec<Push>, StoreError> {
        Ok(pushes::dead(&self.client().await?, scope, limit).await?)
    }

    async fn put_approval(&self, approval: &Approval) -> Result<u64, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        approvals::add(&transaction, approval).await?;
        self.commit_change(transaction).await
    }

    async fn approvals(&self, filter: &ApprovalFilter) -> Result<Vec<Approval>, StoreError> {
        Ok(approvals::list(&self.client().await?, filter).await?)
    }

    async fn decide_approval(&self, id: &ApprovalId, decided: &Decided) -> Result<bool, StoreError> {
        let mut client = self.client().await?;
        let transaction = begin(&mut client).await?;
        let counts = approvals::decide(&transaction, id, decided).await?;
        Ok(self.commit(transaction, counts).await?.is_some())
    }

    async fn settle_approval(&self, id: &ApprovalId) -> Result<bool, StoreError> {
        Ok(approvals::settle(&self.client().await?, id).await?)
    }
}
