//! What a store promises about agents, probes, tokens and the generation.

use jiff::Timestamp;
use rialto_model::{
    agent::{Agent, AgentTrust, Health, PendingCard, Probe, RowStorage, SignatureStatus},
    call::CallerKind,
    card::Dialect,
    credential::{Credential, Secret, SecretSource},
    ids::{AgentId, ProjectId, Scope},
    store::{CreatedTenant, SealedSecret, Store, StoreError, Token},
    token_scopes::TokenScopes,
};

use super::{agent, at, card, head};

/// Every field, the raw card's text and the nanoseconds included.
pub async fn an_agent_comes_back_as_it_was_put(store: &dyn Store) {
    let full = Agent {
        pending: Some(PendingCard { card: card("weather", "a new description"), seen_at: at(3) }),
        trust: AgentTrust::Trusted,
        health: Health::Degraded,
        signature: SignatureStatus::Valid,
        credential: Some(Credential::new(SecretSource::Env("WEATHER_TOKEN".to_owned()))),
        allow_private: true,
        card_path: Some("/.well-known/agent.json".to_owned()),
        etag: Some("\"abc\"".to_owned()),
        speaks: Some(Dialect::V03),
        timeout_ms: Some(90_000),
        last_fetched_at: at(1),
        last_seen_at: Some(at(2)),
        last_error: Some("it was slow".to_owned()),
        version: 7,
        ..agent("weather")
    };
    store.put_agent(&full, None).await.unwrap();
    assert_eq!(store.agents().await.unwrap(), [full]);
}

/// What stands behind a row, and that only the configuration changes it.
pub async fn what_is_deployed_comes_back_as_it_was_put(store: &dyn Store) {
    let backing = r#"{"mcp":{"name":"w","via":{"command":{"argv":["w","-v"],"env":{"T":{"env":"TOKEN"}}}}}}"#;
    let row = Agent {
        url: "mcp:w".to_owned(),
        trust: AgentTrust::System,
        backing: serde_json::from_str(backing).unwrap(),
        keep: RowStorage::Configured,
        ..agent("w")
    };
    store.put_agent(&row, None).await.unwrap();
    let row = Agent { keep: RowStorage::Stored, version: 2, ..row };
    store.put_agent(&row, Some(1)).await.unwrap();
    assert_eq!(store.agents().await.unwrap(), [row]);
}

/// Nothing is made up for what is not there.
pub async fn an_agent_without_anything_optional_comes_back_too(store: &dyn Store) {
    let bare = agent("weather");
    store.put_agent(&bare, None).await.unwrap();
    assert_eq!(store.agents().await.unwrap(), [bare]);
}

/// The row is replaced whole, its name and address included.
pub async fn a_new_version_replaces_the_row(store: &dyn Store) {
    let old = agent("weather");
    store.put_agent(&old, None).await.unwrap();
    let new = Agent { id: old.id.clone(), trust: AgentTrust::Trusted, version: 2, ..agent("climate") };
    store.put_agent(&new, Some(1)).await.unwrap();
    assert_eq!(store.agents().await.unwrap(), [new]);
}

/// Whoever read an older row has to read again.
pub async fn a_stale_version_is_a_conflict_and_changes_nothing(store: &dyn Store) {
    let row = Agent { version: 5, ..agent("weather") };
    store.put_agent(&row, None).await.unwrap();
    let late =
        Agent { trust: AgentTrust::Trusted, card: card("weather", "changed"), version: 5, ..row.clone() };
    assert!(matches!(store.put_agent(&late, Some(4)).await, Err(StoreError::Conflict)));
    assert!(store.card_history(&row.id).await.unwrap().is_empty());
    assert_eq!(store.agents().await.unwrap(), [row]);
}

/// A row that was removed does not come back by an update.
pub async fn an_agent_that_is_not_there_cannot_be_replaced(store: &dyn Store) {
    let row = agent("weather");
    assert!(matches!(store.put_agent(&row, Some(1)).await, Err(StoreError::Conflict)));
    assert!(store.agents().await.unwrap().is_empty());
}

/// The error names the URL; another project may use it.
pub async fn a_url_is_taken_once_per_project(store: &dyn Store) {
    let first = agent("weather");
    store.put_agent(&first, None).await.unwrap();
    let second = Agent { url: first.url.clone(), ..agent("climate") };
    let refusal = store.put_agent(&second, None).await.unwrap_err();
    assert_eq!(refusal.to_string(), "the URL https://weather.example is already taken");
    store.put_agent(&Agent { scope: elsewhere(), ..second }, None).await.unwrap();
}

/// The error names the name; another project may use it. A row that is renamed is refused in the same way.
pub async fn a_name_is_taken_once_per_project(store: &dyn Store) {
    let first = agent("weather");
    let second = agent("climate");
    store.put_agent(&first, None).await.unwrap();
    store.put_agent(&second, None).await.unwrap();
    let renamed = Agent { slug: "weather".to_owned(), version: 2, ..second.clone() };
    let refusal = store.put_agent(&renamed, Some(1)).await.unwrap_err();
    assert_eq!(refusal.to_string(), "the name weather is already taken");
    store.put_agent(&Agent { scope: elsewhere(), ..renamed }, Some(1)).await.unwrap();
}

/// Newest first, as the text it was.
pub async fn a_changed_card_leaves_the_old_one_in_history(store: &dyn Store) {
    let mut row = agent("weather");
    let mut expected = Vec::new();
    store.put_agent(&row, None).await.unwrap();
    for (version, description) in [(2, "second"), (3, "third")] {
        expected.insert(0, row.card.raw.clone());
        row = Agent { card: card("weather", description), version, ..row };
        store.put_agent(&row, Some(version - 1)).await.unwrap();
    }
    let history = store.card_history(&row.id).await.unwrap();
    assert_eq!(history.into_iter().map(|old| old.card).collect::<Vec<_>>(), expected);
}

/// A probe or a new trust level is no new card.
pub async fn an_unchanged_card_leaves_no_history(store: &dyn Store) {
    let row = agent("weather");
    store.put_agent(&row, None).await.unwrap();
    store.put_agent(&Agent { trust: AgentTrust::Trusted, version: 2, ..row.clone() }, Some(1)).await.unwrap();
    assert!(store.card_history(&row.id).await.unwrap().is_empty());
}

/// Whoever registers the same agent again begins afresh.
pub async fn a_removed_agent_takes_its_history_and_probes_along(store: &dyn Store) {
    let row = agent("weather");
    store.put_agent(&row, None).await.unwrap();
    store
        .put_agent(&Agent { card: card("weather", "new"), version: 2, ..row.clone() }, Some(1))
        .await
        .unwrap();
    store.record_probe(&probe(&row.id, at(1), Health::Healthy)).await.unwrap();
    assert!(store.remove_agent(&row.id).await.unwrap().is_some());
    assert!(store.remove_agent(&row.id).await.unwrap().is_none());
    assert!(store.agents().await.unwrap().is_empty());
    store.put_agent(&row, None).await.unwrap();
    assert!(store.card_history(&row.id).await.unwrap().is_empty());
    assert!(store.probes(&row.id, 10).await.unwrap().is_empty());
}

/// Only where to look for a token may be written down.
pub async fn a_token_that_was_handed_over_is_never_stored(store: &dyn Store) {
    let held = Some(Credential::new(SecretSource::Held(Secret::from("hunter2"))));
    store.put_agent(&Agent { credential: held, ..agent("weather") }, None).await.unwrap();
    assert_eq!(store.agents().await.unwrap(), [agent("weather")]);
}

/// It belongs to its process.
pub async fn an_agent_of_one_session_is_never_stored(store: &dyn Store) {
    let generation = store.generation();
    // Refused or passed over: both are fine.
    let _ = store.put_agent(&Agent { keep: RowStorage::Session, ..agent("weather") }, None).await;
    assert!(store.agents().await.unwrap().is_empty());
    assert_eq!(store.generation(), generation);
}

/// And no more than were asked for.
pub async fn probes_come_newest_first(store: &dyn Store) {
    let row = agent("weather");
    store.put_agent(&row, None).await.unwrap();
    let mut probes: Vec<Probe> = (0..4).map(|n| probe(&row.id, at(n), Health::Unreachable)).collect();
    for probe in &probes {
        store.record_probe(probe).await.unwrap();
    }
    probes.reverse();
    assert_eq!(store.probes(&row.id, 3).await.unwrap(), probes[..3]);
}

/// An agent that is probed for years does not fill the disk.
pub async fn old_probes_are_dropped_once_there_are_many(store: &dyn Store) {
    let row = agent("weather");
    store.put_agent(&row, None).await.unwrap();
    for n in 0..300 {
        store.record_probe(&probe(&row.id, at(n), Health::Healthy)).await.unwrap();
    }
    let kept = store.probes(&row.id, 1000).await.unwrap();
    assert!((100..300).contains(&kept.len()), "{} are kept", kept.len());
    assert_eq!(kept[0].at, at(299));
}

/// Nobody has to read the registry again because an agent is still there.
pub async fn an_answered_probe_moves_the_last_sighting_and_nothing_else(store: &dyn Store) {
    let row = agent("weather");
    store.put_agent(&row, None).await.unwrap();
    let generation = store.generation();
    store.record_probe(&probe(&row.id, at(5), Health::Degraded)).await.unwrap();
    store.record_probe(&probe(&row.id, at(6), Health::Unreachable)).await.unwrap();
    assert_eq!(store.agents().await.unwrap(), [Agent { last_seen_at: Some(at(5)), ..row }]);
    assert_eq!(store.generation(), generation);
}

/// The agent may have been removed while it was being asked.
pub async fn a_probe_of_an_unknown_agent_is_dropped(store: &dyn Store) {
    let nobody = AgentId::from("agt_nobody");
    store.record_probe(&probe(&nobody, at(0), Health::Healthy)).await.unwrap();
    assert!(store.probes(&nobody, 10).await.unwrap().is_empty());
}

/// The answer says which generation it is, and it is there when the answer is.
pub async fn every_change_of_the_registry_counts_once(store: &dyn Store) {
    let start = store.generation();
    let row = agent("weather");
    assert_eq!(store.put_agent(&row, None).await.unwrap(), start + 1);
    assert_eq!(store.put_agent(&Agent { version: 2, ..row.clone() }, Some(1)).await.unwrap(), start + 2);
    assert_eq!(store.generation(), start + 2);
    assert_eq!(store.remove_agent(&row.id).await.unwrap(), Some(start + 3));
    assert_eq!(store.touch().await.unwrap(), start + 4);
    store.put_token(&token("laptop")).await.unwrap();
    assert_eq!(store.generation(), start + 5);
}

/// The generation is asked on every call, so it must not move with every call.
pub async fn tasks_probes_and_refusals_do_not_count(store: &dyn Store) {
    let row = agent("weather");
    store.put_agent(&row, None).await.unwrap();
    let before = store.generation();
    store.open_task(&head("task_1"), Vec::new()).await.unwrap();
    store.record_probe(&probe(&row.id, at(0), Health::Healthy)).await.unwrap();
    assert!(store.put_agent(&row, None).await.is_err());
    assert!(store.put_agent(&row, Some(9)).await.is_err());
    assert!(store.remove_agent(&AgentId::from("agt_nobody")).await.unwrap().is_none());
    assert_eq!(store.generation(), before);
}

/// Every field.
pub async fn a_token_comes_back_as_it_was_put(store: &dyn Store) {
    let laptop = Token {
        scope: elsewhere(),
        kind: CallerKind::Session,
        rights: TokenScopes::NONE,
        expires_at: Some(at(9)),
        revoked_at: Some(at(3)),
        ..token("laptop")
    };
    store.put_token(&laptop).await.unwrap();
    store.put_token(&token("phone")).await.unwrap();
    assert_eq!(store.tokens().await.unwrap(), [laptop, token("phone")]);
}

/// Every field, in their order; a project is removed without its neighbours.
pub async fn a_tenant_is_created_once_and_removed_once(store: &dyn Store) {
    let tenant = |org: &str, project: &str| CreatedTenant {
        scope: Scope { org: org.into(), project: project.into() },
        created_at: at(7),
        created_by: "ann".to_owned(),
    };
    let (main, ops, other) = (tenant("acme", "main"), tenant("acme", "ops"), tenant("b", "main"));
    for created in [&other, &ops, &main] {
        assert!(store.create_tenant(created).await.unwrap());
    }
    let again = CreatedTenant { created_by: "bob".to_owned(), ..ops.clone() };
    assert!(!store.create_tenant(&again).await.unwrap());
    assert_eq!(store.tenants().await.unwrap(), [main.clone(), ops.clone(), other.clone()]);
    assert!(store.remove_tenant(&ops.scope).await.unwrap());
    assert!(!store.remove_tenant(&ops.scope).await.unwrap());
    assert_eq!(store.tenants().await.unwrap(), [main, other]);
}

/// It stays on the list, and whoever follows the generation hears of it.
pub async fn a_revoked_token_is_marked_once(store: &dyn Store) {
    store.put_token(&token("laptop")).await.unwrap();
    store.put_token(&token("phone")).await.unwrap();
    let before = store.generation();
    assert_eq!(store.revoke_token("laptop", at(5)).await.unwrap(), Some(before + 1));
    assert_eq!(store.generation(), before + 1);
    let revoked = Token { revoked_at: Some(at(5)), ..token("laptop") };
    assert_eq!(store.tokens().await.unwrap(), [revoked.clone(), token("phone")]);
    assert_eq!(store.revoke_token("laptop", at(6)).await.unwrap(), None);
    assert_eq!(store.revoke_token("nobody's", at(6)).await.unwrap(), None);
    assert_eq!(store.generation(), before + 1);
    assert_eq!(store.tokens().await.unwrap(), [revoked, token("phone")]);
}

/// Tokens stay, also when they are over.
pub async fn a_session_that_is_over_goes_when_another_begins(store: &dyn Store) {
    let session = |id: &str, ends| Token { expires_at: Some(at(ends)), ..token(id) };
    let expired = Token { session_of: None, ..session("tok_expired", 5) };
    for put in [&expired, &session("ses_1", 5), &session("ses_2", 20)] {
        store.put_token(put).await.unwrap();
    }
    store.put_token(&Token { created_at: at(10), ..session("ses_3", 30) }).await.unwrap();
    let left: Vec<String> = store.tokens().await.unwrap().into_iter().map(|token| token.id).collect();
    assert_eq!(left, ["ses_2", "ses_3", "tok_expired"]);
}

/// Neither its name nor its hash can be given twice.
pub async fn a_token_is_taken_once(store: &dyn Store) {
    let laptop = token("laptop");
    store.put_token(&laptop).await.unwrap();
    let same_name = Token { hash: "other".to_owned(), ..laptop.clone() };
    let refusal = store.put_token(&same_name).await.unwrap_err();
    assert_eq!(refusal.to_string(), "the token name laptop is already taken");
    let same_hash = Token { id: "phone".to_owned(), ..laptop.clone() };
    assert!(matches!(store.put_token(&same_hash).await, Err(StoreError::Taken(_))));
    assert_eq!(store.tokens().await.unwrap(), [laptop]);
}

fn elsewhere() -> Scope {
    Scope { project: ProjectId::from("elsewhere"), ..Scope::default() }
}

fn probe(agent: &AgentId, at: Timestamp, health: Health) -> Probe {
    Probe { agent: agent.clone(), at, health, elapsed_ms: 12, error: Some("why".to_owned()) }
}

fn token(id: &str) -> Token {
    Token {
        id: id.to_owned(),
        hash: format!("hash of {id}"),
        scope: Scope::default(),
        caller: "ann".into(),
        kind: CallerKind::User,
        rights: TokenScopes::default(),
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        created_by: Some("bob".to_owned()),
        session_of: Some("tok_0".to_owned()),
    }
}

/// By name, the newest of each; and every change counts.
pub async fn secrets_come_back_sealed_as_they_were_put(store: &dyn Store) {
    let sealed = |name: &str, text: &[u8]| SealedSecret {
        name: name.to_owned(),
        key: "k1".to_owned(),
        text: text.to_vec(),
        set_at: at(1),
    };
    let before = store.generation();
    store.put_secrets(vec![sealed("b", b"old"), sealed("a", &[0, 255])]).await.unwrap();
    store.put_secrets(vec![sealed("b", b"new")]).await.unwrap();
    assert_eq!(store.secrets().await.unwrap(), [sealed("a", &[0, 255]), sealed("b", b"new")]);
    assert!(store.remove_secret("a").await.unwrap().is_some());
    assert!(store.remove_secret("a").await.unwrap().is_none());
    assert_eq!(store.secrets().await.unwrap(), [sealed("b", b"new")]);
    assert_eq!(store.generation(), before + 3);
}

/// Whoever comes later gets that one, whatever it proposes; other names have their own.
pub async fn a_seed_is_what_the_first_one_proposed(store: &dyn Store) {
    let before = store.generation();
    let seed = async |name: &str, fresh: &str| {
        store.seed(name, &Secret::from(fresh)).await.unwrap().expose().to_owned()
    };
    assert_eq!(seed("states", "one").await, "one");
    assert_eq!(seed("states", "two").await, "one");
    assert_eq!(seed("others", "two").await, "two");
    assert_eq!(store.generation(), before);
}
