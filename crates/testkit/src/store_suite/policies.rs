//! What a store promises about the policies in it.

use rialto_model::{
    policy::{MAX_POLICY_VERSIONS, PolicyChange, PolicySet, RecordedPolicyChange, StoredPolicy},
    store::{Store, StoreError},
};

use super::at;

/// Each as it was last written, by name; what was taken away is not among them.
pub async fn policies_come_back_as_they_were_last_changed(store: &dyn Store) {
    assert_eq!(store.policies().await.unwrap(), PolicySet::default());
    let before = store.generation();
    assert_eq!(store.change_policy(&change("b", Some("// b")), 0).await.unwrap(), before + 1);
    assert_eq!(store.change_policy(&change("a", Some("// a \u{fc} 1")), 1).await.unwrap(), before + 2);
    store.change_policy(&change("a", Some("// a 2")), 2).await.unwrap();
    let kept = |name: &str, text: &str| StoredPolicy { name: name.to_owned(), text: text.to_owned() };
    let set = store.policies().await.unwrap();
    assert_eq!(set, PolicySet { version: 3, policies: vec![kept("a", "// a 2"), kept("b", "// b")] });
    store.change_policy(&change("a", None), 3).await.unwrap();
    let set = store.policies().await.unwrap();
    assert_eq!(set, PolicySet { version: 4, policies: vec![kept("b", "// b")] });
    assert_eq!(store.generation(), before + 4);
}

/// Whoever checked a change together with others must hear that one of those is not what it was.
pub async fn a_policy_is_not_changed_behind_somebodys_back(store: &dyn Store) {
    store.change_policy(&change("a", Some("// a")), 0).await.unwrap();
    let generation = store.generation();
    for expected in [0, 2] {
        let refused = store.change_policy(&change("b", Some("// b")), expected).await;
        assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    }
    assert_eq!(store.policies().await.unwrap().version, 1);
    assert_eq!(store.generation(), generation);
}

/// Of several who expect the same, one wins.
pub async fn of_two_changes_of_policies_at_once_one_wins(store: &dyn Store) {
    let changes: Vec<_> = (0..8).map(|n| change(&format!("p{n}"), Some("// p"))).collect();
    let done = futures::future::join_all(changes.iter().map(|change| store.change_policy(change, 0))).await;
    assert_eq!(done.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{done:?}");
    assert_eq!(store.policies().await.unwrap().policies.len(), 1);
}

/// Every change, newest first, with when and by whom; of one policy so many are kept.
pub async fn the_history_of_a_policy_says_who_changed_it(store: &dyn Store) {
    let first = change("a", Some("// 1"));
    let second = PolicyChange { at: at(5), by: "bob".to_owned(), ..change("a", None) };
    store.change_policy(&first, 0).await.unwrap();
    store.change_policy(&change("other", Some("// o")), 1).await.unwrap();
    store.change_policy(&second, 2).await.unwrap();
    let expected = [
        RecordedPolicyChange { version: 3, change: second },
        RecordedPolicyChange { version: 1, change: first },
    ];
    assert_eq!(store.policy_history("a").await.unwrap(), expected);
    for n in 3..3 + MAX_POLICY_VERSIONS as u64 + 5 {
        store.change_policy(&change("a", Some(&format!("// {n}"))), n).await.unwrap();
    }
    let kept = store.policy_history("a").await.unwrap();
    assert_eq!((kept.len(), kept[0].version), (MAX_POLICY_VERSIONS, 3 + MAX_POLICY_VERSIONS as u64 + 5));
    assert_eq!(store.policy_history("other").await.unwrap().len(), 1);
    assert_eq!(store.policies().await.unwrap().policies.len(), 2);
}

fn change(name: &str, text: Option<&str>) -> PolicyChange {
    PolicyChange { name: name.to_owned(), text: text.map(str::to_owned), at: at(1), by: "ann".to_owned() }
}
