use std::sync::Arc;

use rialto_admin::host::{PolicyScope, SharedPolicies};
use rialto_testkit::null_store::NullStore;

use super::*;

const ALL: &str = "@id(\"all\")\npermit (principal, action, resource);\n";
const NONE: &str = "@id(\"all\")\nforbid (principal, action, resource);\n";

/// Files of a folder with an empty store, with blocking calls.
struct FolderFixture(PolicyStore);

impl FolderFixture {
    fn load(&self) -> Result<Policy, PolicyError> {
        wait(self.0.load()).unwrap()
    }

    fn sources(&self) -> Result<Vec<PolicySource>, PolicyError> {
        wait(self.0.sources()).unwrap()
    }

    fn prepare(&self) -> io::Result<()> {
        self.0.files().prepare()
    }

    fn save(&self, name: &str, text: &str, now: Timestamp) -> Result<SavedPolicyText, PolicySaveError> {
        wait(self.0.save(name, text, None, now))
    }

    fn remove(&self, name: &str, now: Timestamp) -> Result<SavedPolicyText, PolicySaveError> {
        wait(self.0.remove(name, None, now))
    }

    fn history(&self, name: &str) -> Result<Vec<PolicyFileVersion>, PolicySaveError> {
        wait(self.0.history(name, None))
    }

    fn restore(&self, name: &str, version: i64, now: Timestamp) -> Result<SavedPolicyText, PolicySaveError> {
        wait(self.0.restore(name, version, None, now))
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn fresh_folder() -> (tempfile::TempDir, FolderFixture) {
    let home = tempfile::tempdir().unwrap();
    let policies = PolicyFiles::Folder(home.path().join("policies"));
    policies.prepare().unwrap();
    (
        home,
        FolderFixture(PolicyStore::new(
            policies,
            Arc::new(NullStore::default()),
            PolicyLocation::Files,
            "ann".to_owned(),
        )),
    )
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn texts(policies: &FolderFixture, name: &str) -> Vec<String> {
    policies.history(name).unwrap().into_iter().filter_map(|version| version.text).collect()
}

#[test]
fn a_new_folder_holds_the_starter_policy_and_an_edited_one_stays_edited() {
    let (home, policies) = fresh_folder();
    assert!(policies.load().unwrap().ids().contains(&"starter-discover".to_owned()));
    fs::write(home.path().join("policies/starter.cedar"), "// mine").unwrap();
    policies.prepare().unwrap();
    assert_eq!(policies.load().unwrap().ids(), ["allow-admin-all"]);
}

#[test]
fn what_would_not_hold_up_together_with_the_rest_is_not_written() {
    let (home, policies) = fresh_folder();
    policies.save("all", ALL, at(0)).unwrap();
    let before = policies.sources().unwrap();
    let clash = policies.save("other", ALL, at(1)).unwrap_err();
    assert!(clash.to_string().contains("two policies are called \"all\""), "{clash}");
    let both = "permit (principal, action, resource is Skill) when { resource.colour == 1 };\npermit (";
    assert!(matches!(policies.save("all", both, at(2)), Err(PolicySaveError::Invalid(_))));
    assert_eq!(policies.sources().unwrap(), before);
    let left: Vec<_> =
        fs::read_dir(home.path().join("policies/default")).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(!left.is_empty());
    assert!(
        left.iter().all(|path| path.extension().is_none_or(|extension| extension != "draft")),
        "{left:?}"
    );
}

#[test]
fn all_problems_of_all_files_are_told_at_once() {
    let (home, policies) = fresh_folder();
    let put = |name: &str, text: &str| fs::write(home.path().join("policies").join(name), text).unwrap();
    put("a.cedar", "permit (");
    put("b.cedar", "@id(\"b\") permit (principal, action, resource is Skill) when { resource.colour == 1 };");
    put("c.cedar", "@id(\"b\") permit (principal, action, resource);");
    let told = policies.load().unwrap_err().to_string();
    assert!(
        ["a.cedar:1", "colour", "two policies are called \"b\""].iter().all(|part| told.contains(part)),
        "{told}"
    );
}

#[test]
fn each_save_keeps_the_text_before_it_and_any_of_them_can_come_back() {
    let (_home, policies) = fresh_folder();
    policies.save("mine", ALL, at(0)).unwrap();
    policies.save("mine", NONE, at(1)).unwrap();
    policies.save("mine", NONE, at(2)).unwrap();
    assert_eq!(texts(&policies, "mine"), [ALL]);
    policies.remove("mine", at(3)).unwrap();
    assert_eq!(texts(&policies, "mine"), [NONE, ALL]);
    let oldest = policies.history("mine").unwrap().pop().unwrap();
    policies.restore("mine", oldest.version, at(4)).unwrap();
    assert!(policies.load().unwrap().ids().contains(&"all".to_owned()));
    assert!(matches!(policies.restore("mine", 7, at(5)), Err(PolicySaveError::NoVersion { .. })));
}

#[test]
fn versions_of_one_moment_are_told_apart_and_the_oldest_are_let_go() {
    let (_home, policies) = fresh_folder();
    for number in 0..=60 {
        policies.save("mine", &format!("// {number}"), at(0)).unwrap();
    }
    let texts = texts(&policies, "mine");
    assert_eq!(texts.len(), 50);
    assert_eq!((texts[0].as_str(), texts[49].as_str()), ("// 59", "// 10"));
}

#[test]
fn a_broken_file_can_be_replaced_by_an_older_text() {
    let (home, policies) = fresh_folder();
    policies.save("mine", ALL, at(0)).unwrap();
    policies.save("mine", NONE, at(1)).unwrap();
    fs::write(home.path().join("policies/default/mine.cedar"), "permit (").unwrap();
    assert!(policies.load().is_err());
    let version = policies.history("mine").unwrap().remove(0).version;
    policies.restore("mine", version, at(2)).unwrap();
    assert!(policies.load().is_ok());
    assert_eq!(texts(&policies, "mine")[0], "permit (");
}

#[test]
fn a_policy_is_removed_by_its_name_or_its_files_but_not_with_its_neighbours() {
    let (_home, policies) = fresh_folder();
    policies.save("mine", ALL, at(0)).unwrap();
    policies.remove("all", at(1)).unwrap();
    assert!(matches!(policies.remove("all", at(2)), Err(PolicySaveError::NotFound(_))));
    assert!(matches!(
        policies.remove("starter-cancel", at(3)),
        Err(PolicySaveError::Shared { count: 4, .. })
    ));
    policies.remove("starter.cedar", at(4)).unwrap();
    policies.remove("allow-admin-all", at(5)).unwrap();
    assert!(policies.load().unwrap().ids().is_empty());
}

#[test]
fn a_name_cannot_leave_the_folder() {
    let (_home, policies) = fresh_folder();
    for name in ["", "..", "../x", "a/b", "a\\b", ".hidden", "a b", ".cedar", "ü"] {
        assert!(matches!(policies.save(name, ALL, at(0)), Err(PolicySaveError::Name(_))), "{name}");
    }
}

#[test]
fn many_saves_at_once_never_make_a_set_that_does_not_hold_up() {
    let (_home, policies) = fresh_folder();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let policies = &policies;
            scope.spawn(move || drop(policies.save(&format!("p{number}"), ALL, at(number))));
        }
    });
    assert_eq!(policies.load().unwrap().ids().iter().filter(|id| *id == "all").count(), 1);
}

/// A folder, and a store beside it.
fn with_store() -> (tempfile::TempDir, PolicyStore) {
    let home = tempfile::tempdir().unwrap();
    let files = PolicyFiles::Folder(home.path().join("policies"));
    files.prepare().unwrap();
    let store = rialto_store::SqliteStore::in_memory(|_| Err("no cards here".into())).unwrap();
    (home, PolicyStore::new(files, Arc::new(store), PolicyLocation::Files, "ann".to_owned()))
}

const IN_STORE: Option<PolicyLocation> = Some(PolicyLocation::Store);

#[tokio::test]
async fn policies_of_both_kinds_are_in_force_and_say_where_they_are_kept() {
    let (_home, book) = with_store();
    let kept = book.save("mine", "permit (principal, action, resource);", IN_STORE, at(0)).await.unwrap();
    assert_eq!((kept.key.shelf, kept.name()), (PolicyLocation::Store, "mine".to_owned()));
    let rules = book.load().await.unwrap().unwrap().rules();
    let rule = rules.iter().find(|rule| rule.file == "store:mine").unwrap();
    assert_eq!(rule.name, "store:mine#1");
    assert!(rules.iter().any(|rule| rule.file == "starter.cedar"));
}

#[tokio::test]
async fn what_is_kept_on_one_side_is_checked_together_with_the_other() {
    let (home, book) = with_store();
    book.save("mine", ALL, None, at(0)).await.unwrap();
    let clash = book.save("other", ALL, IN_STORE, at(1)).await.unwrap_err();
    assert!(clash.to_string().contains("two policies are called \"all\""), "{clash}");
    book.remove("mine", None, at(2)).await.unwrap();
    book.save("other", ALL, IN_STORE, at(3)).await.unwrap();
    assert!(matches!(book.save("mine", ALL, None, at(4)).await, Err(PolicySaveError::Invalid(_))));
    // A file that was edited directly is checked when it is read.
    fs::write(home.path().join("policies/default/mine.cedar"), ALL).unwrap();
    assert!(book.load().await.unwrap().is_err());
    book.remove("other", IN_STORE, at(5)).await.unwrap();
    assert!(book.load().await.unwrap().is_ok());
}

#[tokio::test]
async fn a_policy_in_the_store_has_a_history_and_comes_back_from_it() {
    let (_home, book) = with_store();
    book.save("mine", ALL, IN_STORE, at(0)).await.unwrap();
    book.save("mine", NONE, IN_STORE, at(1)).await.unwrap();
    book.save("mine", NONE, IN_STORE, at(2)).await.unwrap();
    book.remove("all", None, at(3)).await.unwrap();
    let history = book.history("mine", None).await.unwrap();
    let seen: Vec<_> = history.iter().map(|version| (version.version, version.text.as_deref())).collect();
    assert_eq!(seen, [(3, None), (2, Some(NONE)), (1, Some(ALL))]);
    assert_eq!(history[0].by.as_deref(), Some("ann"));
    assert!(matches!(book.restore("mine", 3, None, at(4)).await, Err(PolicySaveError::NoVersion { .. })));
    assert_eq!(book.restore("mine", 1, None, at(4)).await.unwrap().to_string(), "store:mine");
    assert!(book.load().await.unwrap().unwrap().ids().contains(&"all".to_owned()));
}

#[tokio::test]
async fn a_name_that_is_on_both_sides_has_to_be_told_apart() {
    let (_home, book) = with_store();
    book.save("mine", ALL, None, at(0)).await.unwrap();
    book.save("mine", "// nothing", IN_STORE, at(1)).await.unwrap();
    assert!(matches!(book.remove("mine", None, at(2)).await, Err(PolicySaveError::Both(_))));
    assert_eq!(book.remove("store:mine", None, at(3)).await.unwrap().key.shelf, PolicyLocation::Store);
    assert_eq!(book.remove("mine", None, at(4)).await.unwrap().key.shelf, PolicyLocation::Files);
}

fn acme(shared: SharedPolicies) -> PolicyScope {
    PolicyScope { by: "olga".to_owned(), org: "acme".into(), shared }
}

#[tokio::test]
async fn an_org_sees_and_changes_its_own_policies_alone() {
    let (home, book) = with_store();
    let theirs = book.with_scope(acme(SharedPolicies::Hidden));
    for shelf in [Some(PolicyLocation::Files), IN_STORE] {
        book.save("mine", ALL, shelf, at(0)).await.unwrap();
        // Another org can use these names without effect on the others.
        let kept = theirs.save("mine", NONE, shelf, at(1)).await.unwrap();
        assert_eq!(kept.key.owner.as_ref().map(OrgId::as_str), Some("acme"));
        theirs.remove("mine", shelf, at(2)).await.unwrap();
        assert!(matches!(theirs.remove("mine", shelf, at(3)).await, Err(PolicySaveError::NotFound(_))));
        assert!(matches!(
            theirs.restore("mine", 1, shelf, at(3)).await,
            Err(PolicySaveError::NoVersion { .. })
        ));
        book.remove("mine", shelf, at(4)).await.unwrap();
    }
    for shared in ["starter.cedar", "starter", "allow-admin-all", "owner"] {
        assert!(
            matches!(theirs.remove(shared, None, at(5)).await, Err(PolicySaveError::NotFound(_))),
            "{shared}"
        );
    }
    // A text with the name of one for all orgs is a new one of theirs.
    theirs.save("starter", NONE, None, at(6)).await.unwrap();
    assert!(home.path().join("policies/acme/starter.cedar").exists());
    assert!(
        fs::read_to_string(home.path().join("policies/starter.cedar")).unwrap().contains("starter-discover")
    );
    let rules = book.load().await.unwrap().unwrap().rules();
    assert_eq!(rules.iter().filter(|rule| rule.org.is_some()).count(), 1);
}

#[tokio::test]
async fn a_broken_policy_of_one_org_keeps_no_other_from_saving() {
    let (home, book) = with_store();
    let theirs = book.with_scope(acme(SharedPolicies::Hidden));
    theirs.save("mine", ALL, None, at(0)).await.unwrap();
    fs::write(home.path().join("policies/acme/mine.cedar"), "permit (").unwrap();
    book.save("mine", ALL, None, at(1)).await.unwrap();
    assert!(theirs.save("other", ALL, None, at(2)).await.is_err());
    theirs.save("mine", NONE, None, at(3)).await.unwrap();
    assert!(book.load().await.unwrap().is_ok());
}

#[tokio::test]
async fn the_owner_of_the_server_changes_policies_for_all_orgs_where_they_are() {
    let (home, book) = with_store();
    book.save("starter.cedar", "// nothing", None, at(0)).await.unwrap();
    assert_eq!(fs::read_to_string(home.path().join("policies/starter.cedar")).unwrap(), "// nothing");
    let shared = book.with_scope(acme(SharedPolicies::Only));
    for shelf in [None, IN_STORE] {
        let kept = shared.save("everywhere", ALL, shelf, at(1)).await.unwrap();
        assert_eq!(kept.key.owner, None);
        shared.remove("everywhere", shelf, at(2)).await.unwrap();
    }
    assert_eq!(shared.restore("everywhere", 1, IN_STORE, at(3)).await.unwrap().key.owner, None);
    assert_eq!(book.remove_for_org(&"acme".into(), at(4)).await.unwrap(), 0);
    book.with_scope(acme(SharedPolicies::Hidden)).save("x", NONE, None, at(5)).await.unwrap();
    assert_eq!(book.remove_for_org(&"acme".into(), at(6)).await.unwrap(), 1);
}
