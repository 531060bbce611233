//! Engine with a workflow runner, and an agent whose skills each do one thing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream, stream::BoxStream};
use parking_lot::Mutex;
use rialto_engine::{
    CallRequest, Config, Engine, EngineDeps, Registry,
    peer::Peer,
    peer_by_backing::{Discoveries, Peers},
    registry::Registration,
};
use rialto_model::{
    agent::AgentTrust,
    approval::{Approval, ApprovalFilter, ApprovalVerdict},
    backing::skill,
    call::{Call, CallTarget, Caller, CancelRequest, EntryProtocol, FollowRequest},
    clock::{Clock, SystemClock, Timestamp},
    event::{Event, EventAside, QuestionKind, RemoteIds},
    failure::{Failure, FailureKind},
    flow::{FlowStatus, FlowStep, RunRecord},
    ids::{TaskId, fresh},
    json::Json,
    message::{Artifact, Message, Part, Role},
    store::Store,
    task::Task,
};
use rialto_policy::{Permitted, Policy};
use rialto_store::SqliteStore;
use rialto_testkit::{
    agents,
    faulty_store::{FaultSwitch, FaultyStore},
    peer::ScriptedDiscovery,
};
use rialto_workflow::run::{self, NewDefinition, RunnerDeps, WorkflowRunner};
use tokio::sync::Semaphore;

pub(crate) const URL: &str = "https://office.example.com";

/// Everything that is around a run.
pub(crate) struct WorkflowFixture {
    pub(crate) engine: Engine,
    pub(crate) runner: WorkflowRunner,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) office: Arc<ScriptedAgent>,
    pub(crate) caller: Caller,
    pub(crate) clock: Arc<ShiftedClock>,
    discovery: Arc<ScriptedDiscovery>,
}

/// A clock that goes ahead of everybody else's.
#[derive(Default)]
pub(crate) struct ShiftedClock(Mutex<Duration>);

/// An agent whose skills each do one thing: `echo` answers its arguments, `say` a text, `fail` fails, `flaky` fails twice, `ask` asks
/// once, `gone` cannot be reached, `slow` waits until it is let go of.
pub(crate) struct ScriptedAgent {
    /// What each skill was called with, in order.
    pub(crate) calls: Mutex<Vec<(String, Json)>>,
    /// How many calls led to each.
    pub(crate) hops: Mutex<Vec<u8>>,
    pub(crate) canceled: Mutex<Vec<String>>,
    pub(crate) let_go: Arc<Semaphore>,
    at_once: Arc<AtomicUsize>,
    most_at_once: AtomicUsize,
    results: Mutex<BTreeMap<String, Json>>,
}

impl WorkflowFixture {
    pub(crate) async fn new() -> Self {
        Self::furnished(Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap())).await
    }

    async fn furnished(store: Arc<dyn Store>) -> Self {
        let fixture = Self::on(store, Arc::default(), Arc::default(), Duration::ZERO);
        let skills = ["echo", "say", "fail", "flaky", "ask", "gone", "slow"].map(agents::skill);
        fixture.discovery.serve(URL, agents::card("Office", skills.to_vec()));
        let wanted = Registration { trust: Some(AgentTrust::Trusted), ..Registration::new(URL) };
        fixture.engine.registry().register(wanted).await.unwrap();
        fixture
    }

    /// The same on a store whose faults can be switched on.
    pub(crate) async fn faulty() -> (Self, FaultSwitch) {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory(agents::parse_card).unwrap());
        let (store, switch) = FaultyStore::wrap(store);
        (Self::furnished(store).await, switch)
    }

    /// Another process on the same store, for which it is so much later.
    pub(crate) async fn later(&self, ahead: Duration) -> Self {
        let fixture =
            Self::on(Arc::clone(&self.store), Arc::clone(&self.discovery), Arc::clone(&self.office), ahead);
        fixture.engine.policies().sync().await.unwrap();
        fixture
    }

    fn on(
        store: Arc<dyn Store>,
        discovery: Arc<ScriptedDiscovery>,
        office: Arc<ScriptedAgent>,
        ahead: Duration,
    ) -> Self {
        let clock = Arc::new(ShiftedClock(Mutex::new(ahead)));
        let runner = WorkflowRunner::new(
            RunnerDeps { store: Arc::clone(&store) },
            run::Config { max_depth: 3, ..run::Config::default() },
        );
        let discoveries = Arc::new(Discoveries { a2a: discovery.clone(), mcp: discovery.clone() });
        let config = Config::default();
        let registry = Arc::new(Registry::new(store.clone(), discoveries, clock.clone(), config.clone()));
        let (a2a, flow): (Arc<dyn Peer>, Arc<dyn Peer>) = (office.clone(), Arc::new(runner.clone()));
        let engine = Engine::new(EngineDeps {
            store: store.clone(),
            registry,
            peer: Arc::new(Peers { mcp: a2a.clone(), function: a2a.clone(), acp: a2a.clone(), a2a, flow }),
            policy: Policy::starter().unwrap(),
            policy_loader: None,
            clock: clock.clone(),
            config,
        });
        runner.connect(engine.downgrade());
        Self { engine, runner, store, office, caller: Caller::user("ann"), clock, discovery }
    }

    /// Keeps a definition that is in use.
    pub(crate) async fn add(&self, text: &str) {
        self.add_as(text, FlowStatus::Active).await;
    }

    pub(crate) async fn add_as(&self, text: &str, status: FlowStatus) {
        let given = NewDefinition {
            scope: self.caller.scope.clone(),
            text: text.to_owned(),
            name: "unnamed".to_owned(),
            kind: None,
            by: self.caller.id.clone(),
            token: self.caller.token.clone(),
            status: Some(status),
            configured: false,
        };
        self.runner.definitions().add(&self.engine, given).await.unwrap();
    }

    /// A call that runs a definition without keeping it.
    pub(crate) async fn inline(&self, text: &str, input: &str) -> CallRequest {
        let agent = self.engine.registry().deployments().ensure_flows(&self.caller.scope).await.unwrap();
        let made = skill("orchestrate_workflow", "orchestrate_workflow", "");
        let members =
            [("workflow".to_owned(), Json::encode(text)), ("input".to_owned(), Json::parse(input).unwrap())];
        let args = Json::encode(&members.into_iter().collect::<rialto_model::json::Extra>());
        let target = CallTarget { agent, skill: Some(Arc::new(made)) };
        CallRequest::skill(self.caller.clone(), EntryProtocol::Library, target, args)
    }

    /// Runs a definition to its end, or its first question.
    pub(crate) async fn run(&self, text: &str, input: &str) -> Result<Task, Failure> {
        let request = self.inline(text, input).await;
        self.engine.calls().start(request).await?.into_handle()?.finish().await
    }

    /// What a definition answers.
    pub(crate) async fn made(&self, text: &str, input: &str) -> String {
        made(&self.run(text, input).await.unwrap())
    }

    /// Says something to a run.
    pub(crate) async fn tell(&self, run: &TaskId, part: Part) -> Result<Task, Failure> {
        let worker = self.engine.tasks().target(&self.caller, run.as_str()).await?;
        let target = CallTarget { agent: worker.agent, skill: None };
        let mut request =
            CallRequest::message(self.caller.clone(), EntryProtocol::Library, target, vec![part]);
        request.task = Some(run.to_string());
        self.engine.calls().start(request).await?.into_handle()?.finish().await
    }

    /// The task once it is over, with somebody who sees to what waits for approval.
    pub(crate) async fn kept_until_over(&self, run: &TaskId) -> Task {
        let stop = tokio_util::sync::CancellationToken::new();
        let (engine, stopped) = (self.engine.clone(), stop.clone());
        let keeper = tokio::spawn(async move { engine.approvals().run_expiry_loop(stopped).await });
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        let over = loop {
            let task = self.engine.tasks().read(&self.caller, run.as_str()).await.unwrap();
            if task.head.state.is_terminal() || tokio::time::Instant::now() > deadline {
                break task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        stop.cancel();
        keeper.await.unwrap();
        over
    }

    /// Everything that waits for approval.
    pub(crate) async fn approvals(&self) -> Vec<Approval> {
        let filter = ApprovalFilter { limit: 100, ..ApprovalFilter::default() };
        self.store.approvals(&filter).await.unwrap()
    }

    /// Decides something as a person elsewhere does.
    pub(crate) async fn decide(&self, approval: &Approval, approved: bool) {
        let decided =
            ApprovalVerdict { approved, by: "boss".to_owned(), reason: None, at: self.engine.now() };
        assert!(self.store.decide_approval(&approval.id, &decided).await.unwrap());
        let stop = tokio_util::sync::CancellationToken::new();
        let (engine, stopped) = (self.engine.clone(), stop.clone());
        let keeper = tokio::spawn(async move { engine.approvals().run_expiry_loop(stopped).await });
        while !self.engine.approvals().is_settled(approval).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.cancel();
        keeper.await.unwrap();
    }

    /// The task once it waits or is over.
    pub(crate) async fn settled(&self, run: &TaskId) -> Task {
        loop {
            let task = self.engine.tasks().read(&self.caller, run.as_str()).await.unwrap();
            if task.head.state.is_terminal() || task.head.state.is_waiting() {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn record(&self, run: &TaskId) -> RunRecord {
        self.store.run(&self.caller.scope, run).await.unwrap().unwrap()
    }

    /// How the steps of a run stand, by name.
    pub(crate) async fn standings(&self, run: &TaskId) -> BTreeMap<String, String> {
        let name = |step: &FlowStep| {
            step.item.map_or_else(|| step.node.clone(), |item| format!("{}[{item}]", step.node))
        };
        let steps = self.record(run).await.steps;
        steps.iter().map(|step| (name(step), step.state.as_str().to_owned())).collect()
    }

    /// The skills that were called, in order.
    pub(crate) fn called(&self) -> Vec<String> {
        self.office.calls.lock().iter().map(|(skill, _)| skill.clone()).collect()
    }
}

/// What a task has made, as text.
pub(crate) fn made(task: &Task) -> String {
    let part = task.artifacts.first().and_then(|artifact| artifact.parts.first());
    match part.map(|part| &part.content) {
        Some(rialto_model::message::Content::Data(data)) => data.get().to_owned(),
        Some(rialto_model::message::Content::Text(text)) => format!("text: {text}"),
        other => panic!("{other:?}"),
    }
}

impl ShiftedClock {
    pub(crate) fn forward(&self, by: Duration) {
        *self.0.lock() += by;
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().checked_add(*self.0.lock()).unwrap()
    }
}

impl Default for ScriptedAgent {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            hops: Mutex::default(),
            canceled: Mutex::default(),
            let_go: Arc::new(Semaphore::new(0)),
            at_once: Arc::default(),
            most_at_once: AtomicUsize::new(0),
            results: Mutex::default(),
        }
    }
}

impl ScriptedAgent {
    /// How many calls were under way at once, at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most_at_once.load(Ordering::SeqCst)
    }

    fn times(&self, skill: &str) -> usize {
        self.calls.lock().iter().filter(|(known, _)| known == skill).count()
    }
}

fn finished(part: Part) -> Vec<Event> {
    let artifact = Artifact::new("result", vec![part]);
    vec![
        Event::Artifact { artifact, append: false, last: true, aside: EventAside::default() },
        Event::Finished { message: None, aside: EventAside::default() },
    ]
}

fn accepted(task: &str) -> Event {
    let remote = RemoteIds { task_id: Some(task.to_owned()), context_id: None };
    Event::Accepted { remote, aside: EventAside::default() }
}

fn asked(words: &str) -> Event {
    let message = Message::new(fresh(), Role::Agent, vec![Part::text(words)]);
    Event::Asked { ask: QuestionKind::Input, message: Some(message), aside: EventAside::default() }
}

impl Peer for ScriptedAgent {
    fn send(&self, call: Permitted<Call>) -> BoxStream<'static, Event> {
        let call = call.into_inner();
        let skill = call.target.skill_id().to_owned();
        self.calls.lock().push((skill.clone(), call.args()));
        self.hops.lock().push(call.caller.hops);
        if call.continues.task_id.is_some() {
            return stream::iter(finished(call.parts.into_iter().next().unwrap())).boxed();
        }
        let remote = fresh();
        let events = match skill.as_str() {
            "say" => [vec![accepted(&remote)], finished(Part::text("well said"))].concat(),
            "fail" => {
                vec![accepted(&remote), Event::failed(Failure::new(FailureKind::PeerFailed, "no luck"))]
            }
            "flaky" if self.times("flaky") < 3 => {
                vec![accepted(&remote), Event::failed(Failure::new(FailureKind::PeerFailed, "not yet"))]
            }
            "gone" => {
                let gone = Failure::new(FailureKind::PeerUnreachable, "connection refused").not_sent();
                vec![Event::failed(gone)]
            }
            "ask" => vec![accepted(&remote), asked("which one?")],
            "slow" => return self.slowly(&remote, call.args()),
            _ => [vec![accepted(&remote)], finished(Part::data(call.args()))].concat(),
        };
        stream::iter(events).boxed()
    }

    fn follow(&self, follow: Permitted<FollowRequest>) -> BoxStream<'static, Result<Event, Failure>> {
        let id = follow.into_inner().remote.task_id.unwrap();
        let result = self.results.lock().get(&id).cloned();
        match result {
            Some(args) => stream::iter(finished(Part::data(args)).into_iter().map(Ok)).boxed(),
            None => stream::iter([Err(Failure::new(FailureKind::PeerUnreachable, "not now"))]).boxed(),
        }
    }

    fn cancel(&self, cancel: Permitted<CancelRequest>) -> BoxFuture<'static, Result<Vec<Event>, Failure>> {
        self.canceled.lock().push(cancel.into_inner().remote.task_id.unwrap());
        async { Ok(vec![Event::Canceled { message: None, aside: EventAside::default() }]) }.boxed()
    }
}

impl ScriptedAgent {
    /// Names the task at once and ends it when it is let go of; asked later, it has ended.
    fn slowly(&self, remote: &str, args: Json) -> BoxStream<'static, Event> {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        self.results.lock().insert(remote.to_owned(), args.clone());
        let (let_go, at_once) = (Arc::clone(&self.let_go), Arc::clone(&self.at_once));
        let wait = async move {
            // Whoever holds one of these has let one go.
            let_go.acquire().await.unwrap().forget();
            at_once.fetch_sub(1, Ordering::SeqCst);
            stream::iter(finished(Part::data(args)))
        };
        stream::iter([accepted(remote)]).chain(wait.flatten_stream()).boxed()
    }
}
