//! What becomes of agents.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rialto_engine::{
    Config,
    peer::DiscoveryError,
    registry::{Refreshed, Registration},
};
use rialto_model::{
    agent::{Health, Keep, Trust},
    event::Event,
    failure::{Failure, Kind},
};
use rialto_testkit::{agents, peer::ScriptedPeer};
use serde_json::json;

use crate::world::{URL, World};

async fn world() -> World {
    World::with(ScriptedPeer::echo()).await
}

fn listed(world: &World) -> Vec<String> {
    let directory = world.engine.registry().directory(&world.caller.scope);
    directory.listed().map(|entry| entry.canonical.clone()).collect()
}

#[tokio::test]
async fn nothing_is_stored_when_the_card_cannot_be_had() {
    let world = World::empty(ScriptedPeer::echo(), Config::default()).await;
    world.discovery.fail(URL, DiscoveryError::Status { url: URL.into(), status: 503 });
    let error = world.engine.registry().register(Registration::new(URL)).await.unwrap_err();
    assert!(error.to_string().contains("503"));
    assert_eq!(error.kind(), Kind::PeerUnreachable);
    assert!(world.store.agents().await.unwrap().is_empty());
    assert!(world.engine.registry().agents(&world.caller.scope).is_empty());
}

#[tokio::test]
async fn the_same_address_in_another_spelling_is_the_same_agent() {
    let world = world().await;
    let again = Registration::new("HTTPS://Vercel.Example.com:443/.well-known/agent-card.json");
    let again = world.engine.registry().register(again).await.unwrap();
    assert!(!again.created);
    assert_eq!(again.agent.trust, Trust::Trusted, "what was said about it before stays");
    assert_eq!(world.engine.registry().agents(&world.caller.scope).len(), 1);
}

#[tokio::test]
async fn the_second_agent_of_a_name_gets_a_number() {
    let world = world().await;
    let other = "https://other.example.com";
    world.discovery.serve(other, agents::card("Vercel-Ops", vec![agents::skill("deploy")]));
    let second = world.engine.registry().register(Registration::new(other)).await.unwrap().agent;
    assert_eq!(second.slug, "vercel_ops_2");
    assert_eq!(listed(&world), ["vercel_ops.deploy", "vercel_ops_2.deploy"]);
}

#[tokio::test]
async fn an_agent_that_was_away_for_a_moment_is_called_again_within_about_a_second() {
    let peer =
        ScriptedPeer::telling(vec![Event::failed(Failure::new(Kind::PeerUnreachable, "HTTP status 503"))]);
    let world = World::with(peer).await;
    let registry = world.engine.registry();
    world.discovery.fail(URL, DiscoveryError::Status { url: URL.into(), status: 503 });
    let mut changed = registry.watch();
    assert_eq!(world.call(json!({})).await.unwrap_err().kind, Kind::PeerUnreachable);
    let health = |health: Health| {
        let registry = Arc::clone(registry);
        let scope = world.caller.scope.clone();
        move |_: &u64| registry.find(&scope, "vercel_ops").unwrap().health == health
    };
    changed.wait_for(health(Health::Unreachable)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.discovery.serve(URL, agents::card("Vercel Ops", vec![agents::skill("deploy")]));
    let back = changed.wait_for(health(Health::Healthy));
    tokio::time::timeout(Duration::from_secs(2), back).await.expect("it is probed with backoff").unwrap();
    assert_eq!(listed(&world), ["vercel_ops.deploy"]);
}

#[tokio::test]
async fn an_agent_that_dies_leaves_the_list_and_comes_back_by_itself() {
    let world = world().await;
    let registry = world.engine.registry();
    let mut changed = registry.watch();
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    world.discovery.stop(URL);
    assert_eq!(registry.probe(&agent).await.unwrap(), Health::Unreachable);
    assert!(changed.has_changed().unwrap());
    assert!(listed(&world).is_empty());
    let failure = world.call(json!({})).await.unwrap_err();
    assert_eq!(failure.kind, Kind::PeerUnreachable);
    changed.mark_unchanged();
    world.discovery.serve(URL, agents::card("Vercel Ops", vec![agents::skill("deploy")]));
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    assert_eq!(registry.probe(&agent).await.unwrap(), Health::Healthy);
    assert!(changed.has_changed().unwrap());
    assert_eq!(listed(&world), ["vercel_ops.deploy"]);
    assert_eq!(registry.probes(&agent, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_invalid_card_degrades_an_agent_and_keeps_its_stored_one() {
    let world = world().await;
    let registry = world.engine.registry();
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    world.discovery.fail(URL, DiscoveryError::Invalid { url: URL.into(), reason: "name: missing".into() });
    assert_eq!(registry.probe(&agent).await.unwrap(), Health::Degraded);
    assert_eq!(listed(&world), ["vercel_ops.deploy"]);
    assert!(registry.refresh(&agent).await.is_err());
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    assert_eq!(agent.health, Health::Unreachable, "a failed refresh makes it unreachable");
    assert!(agent.last_error.as_ref().unwrap().contains("name: missing"));
}

#[tokio::test]
async fn a_refresh_tells_what_changed_and_keeps_the_old_card() {
    let world = world().await;
    let registry = world.engine.registry();
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    assert!(matches!(registry.refresh(&agent).await.unwrap(), Refreshed::Unchanged(_)));
    world.discovery.serve(URL, agents::card("Vercel Ops", vec![agents::skill("rollback")]));
    let Refreshed::Changed(agent, diff) = registry.refresh(&agent).await.unwrap() else {
        panic!("nothing changed")
    };
    assert_eq!((diff.added, diff.removed), (vec!["rollback".to_owned()], vec!["deploy".to_owned()]));
    assert_eq!(listed(&world), ["vercel_ops.rollback"]);
    assert_eq!(registry.history(&agent).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_pinned_card_waits_for_approval() {
    let world = World::empty(ScriptedPeer::echo(), Config { pin_cards: true, ..Config::default() }).await;
    world.register(agents::skill("deploy"), Trust::Trusted).await;
    let registry = world.engine.registry();
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    world.discovery.serve(URL, agents::card("Vercel Ops", vec![agents::skill("rollback")]));
    let Refreshed::Held(agent, _) = registry.refresh(&agent).await.unwrap() else { panic!("not held") };
    assert_eq!(listed(&world), ["vercel_ops.deploy"]);
    registry.approve(&agent).await.unwrap();
    assert_eq!(listed(&world), ["vercel_ops.rollback"]);
}

#[tokio::test]
async fn removing_an_agent_revokes_it() {
    let world = world().await;
    let registry = world.engine.registry();
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    registry.remove(&agent).await.unwrap();
    assert!(listed(&world).is_empty());
    assert!(world.engine.resolve(&world.caller, "vercel_ops.deploy").is_none());
    assert!(world.store.agents().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_session_s_agent_is_never_stored_and_hides_the_stored_one() {
    let world = world().await;
    let registry = world.engine.registry();
    let own = Registration { keep: Keep::Session, trust: Some(Trust::Trusted), ..Registration::new(URL) };
    let own = registry.register(own).await.unwrap().agent;
    assert_eq!(own.slug, "vercel_ops");
    assert_eq!(registry.agents(&world.caller.scope).len(), 1);
    registry.remove(&own).await.unwrap();
    let stored = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    assert_ne!(stored.id, own.id);
}

#[tokio::test]
async fn an_agent_is_found_by_whatever_it_is_called() {
    let world = world().await;
    let registry = world.engine.registry();
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    for key in [agent.id.as_str(), "Vercel Ops", "vercel ops", "https://vercel.example.com/"] {
        assert!(Arc::ptr_eq(&registry.find(&world.caller.scope, key).unwrap(), &agent), "{key}");
    }
}

#[tokio::test]
async fn a_probe_that_finds_nothing_new_disturbs_nobody() {
    let world = world().await;
    let registry = world.engine.registry();
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    registry.probe(&agent).await.unwrap();
    let (changed, generation) = (registry.watch(), world.store.generation());
    let agent = registry.find(&world.caller.scope, "vercel_ops").unwrap();
    registry.probe(&agent).await.unwrap();
    assert!(!changed.has_changed().unwrap());
    assert_eq!(world.store.generation(), generation);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_our_own_is_not_read_again_by_those_who_ask_meanwhile() {
    let world = world().await;
    let registry = world.engine.registry();
    let mut row = registry.all().remove(0);
    world.engine.sync().await.unwrap();
    let before = registry.surprises();
    let (engine, is_over) = (world.engine.clone(), Arc::new(AtomicBool::new(false)));
    let asking = tokio::spawn({
        let is_over = Arc::clone(&is_over);
        async move {
            while !is_over.load(Ordering::SeqCst) {
                engine.sync().await.unwrap();
            }
        }
    });
    for turn in 0..200 {
        let trust = if turn % 2 == 0 { Trust::External } else { Trust::Trusted };
        row = registry.set_trust(&row, trust).await.unwrap();
    }
    is_over.store(true, Ordering::SeqCst);
    asking.await.unwrap();
    assert_eq!(registry.surprises(), before);
}
