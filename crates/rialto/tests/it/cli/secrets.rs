//! Secrets in the store: used, listed, changed, and nowhere to be read.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::harness::{agent::SampleAgent, rialto::Rialto};

const SECRET: &str = "hunter2-in-the-store";

fn key_file(rialto: &Rialto) -> PathBuf {
    rialto.folder().join(".config/rialto/secret.key")
}

/// An agent whose secret is in the store.
fn installed(rialto: &Rialto) -> SampleAgent {
    let agent = SampleAgent::named("Desk");
    rialto.cli_fed(&["secrets", "set", "desk"], &format!("{SECRET}\n")).ok();
    rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted", "--secret", "store:desk"]).ok();
    agent
}

/// Every file below `folder` that holds `word`.
pub(super) fn holding(folder: &Path, word: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding(&path, word, found);
        } else if std::fs::read(&path).unwrap().windows(word.len()).any(|part| part == word.as_bytes()) {
            found.push(path);
        }
    }
}

#[test]
fn a_secret_in_the_store_reaches_its_agent_and_is_written_nowhere() {
    let rialto = Rialto::fresh();
    let agent = installed(&rialto);
    let mut said = vec![
        rialto.cli(&["call", "desk.echo", "--log", "trace"]).ok(),
        rialto.cli(&["agents", "show", "desk", "--json"]).ok(),
        rialto.cli(&["agents", "list", "--json"]).ok(),
        rialto.cli(&["secrets", "list"]).ok(),
        rialto.cli(&["secrets", "list", "--json"]).ok(),
        rialto.cli(&["audit", "--json"]).ok(),
        rialto.cli(&["tasks", "list", "--json"]).ok(),
        rialto.cli(&["doctor"]).ok(),
    ];
    assert_eq!(agent.tokens(), [format!("Bearer {SECRET}")]);
    agent.show_instead(401, "");
    said.push(rialto.cli(&["call", "desk.fail", "--log", "trace"]));
    for said in said {
        assert!(!said.out.contains(SECRET) && !said.err.contains(SECRET), "{said:?}");
    }
    let mut found = Vec::new();
    holding(rialto.folder(), SECRET, &mut found);
    assert_eq!(found, Vec::<PathBuf>::new());
    assert_eq!(std::fs::metadata(key_file(&rialto)).unwrap().permissions().mode() & 0o777, 0o600);
    let list = rialto.json(&["secrets", "list", "--json"]);
    assert_eq!((&list[0]["name"], &list[0]["usedBy"][0]), (&"desk".into(), &"desk".into()));
}

#[test]
fn a_changed_key_and_a_changed_secret_count_for_the_next_call() {
    let rialto = Rialto::fresh();
    let agent = installed(&rialto);
    let before = std::fs::read(key_file(&rialto)).unwrap();
    rialto.cli(&["call", "desk.echo"]).ok();
    assert!(
        rialto.cli(&["secrets", "rotate-key"]).ok().out.starts_with("encrypted 1 secrets with a new key")
    );
    assert_ne!(std::fs::read(key_file(&rialto)).unwrap(), before);
    rialto.cli(&["call", "desk.echo"]).ok();
    rialto.cli_fed(&["secrets", "set", "desk"], "another").ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    assert_eq!(agent.tokens(), [SECRET, SECRET, "another"].map(|token| format!("Bearer {token}")));
}

#[test]
fn a_change_of_the_key_that_was_cut_short_loses_nothing() {
    let rialto = Rialto::fresh();
    let agent = installed(&rialto);
    let key = key_file(&rialto);
    let old = std::fs::read(&key).unwrap();
    rialto.cli(&["secrets", "rotate-key"]).ok();
    // As if it had stopped right before the new key took the old one's place.
    std::fs::rename(&key, key.with_extension("key.new")).unwrap();
    std::fs::write(&key, old).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    rialto.cli(&["call", "desk.echo"]).ok();
    rialto.cli(&["secrets", "rotate-key"]).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    assert_eq!(agent.tokens().len(), 2);
}

#[test]
fn without_its_key_a_secret_is_not_to_be_had_and_the_error_says_why() {
    let rialto = Rialto::fresh();
    let agent = installed(&rialto);
    let key = key_file(&rialto);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = rialto.cli(&["call", "desk.echo"]).exit(5);
    assert!(said.err.contains("others can read it; chmod 600"), "{}", said.err);
    std::fs::rename(&key, rialto.folder().join("away")).unwrap();
    let said = rialto.cli(&["call", "desk.echo"]).exit(5);
    assert!(said.err.contains("the file does not exist; restore it"), "{}", said.err);
    let said = rialto.cli_fed(&["secrets", "set", "other"], "x").exit(1);
    assert!(said.err.contains("the file does not exist"), "no second key is made: {}", said.err);
    let other = rialto.with("RIALTO_SECRET_KEY", &"ab".repeat(32));
    let said = other.cli(&["call", "desk.echo"]).exit(5);
    assert!(said.err.contains("sealed with another key than RIALTO_SECRET_KEY"), "{}", said.err);
    assert!(agent.tokens().is_empty());
    let findings = other.cli(&["doctor", "--json"]).exit(1).json().to_string();
    assert!(findings.contains("rialto secrets set desk"), "{findings}");
}

#[test]
fn a_key_in_the_environment_is_changed_for_another_one_there() {
    let (one, two) = ("ab".repeat(32), "cd".repeat(32));
    let rialto = Rialto::fresh().with("RIALTO_SECRET_KEY", &one).with("NEXT", &two).with("VALUE", SECRET);
    rialto.cli(&["secrets", "set", "desk", "--from-env", "VALUE"]).ok();
    assert!(!key_file(&rialto).exists());
    let said = rialto.cli(&["secrets", "rotate-key"]).exit(2);
    assert!(said.err.contains("--to-env"), "{}", said.err);
    rialto.cli(&["secrets", "rotate-key", "--to-env", "NEXT"]).ok();
    let agent = SampleAgent::named("Desk");
    let rialto = rialto.with("RIALTO_SECRET_KEY", &two);
    rialto.cli(&["agents", "add", &agent.url, "--trust", "trusted", "--secret", "store:desk"]).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    assert_eq!(agent.tokens(), [format!("Bearer {SECRET}")]);
}

#[test]
fn a_secret_that_is_gone_is_missed_by_name() {
    let rialto = Rialto::fresh();
    let _agent = installed(&rialto);
    let said = rialto.cli(&["secrets", "remove", "desk"]).ok();
    assert!(said.err.contains("desk uses it"), "{}", said.err);
    rialto.cli(&["secrets", "remove", "desk"]).exit(4);
    let said = rialto.cli(&["call", "desk.echo"]).exit(5);
    assert!(said.err.contains("rialto secrets set desk"), "{}", said.err);
    rialto.cli_fed(&["secrets", "set", "desk"], "\n").exit(2);
    rialto.cli_fed(&["secrets", "set", "../desk"], "x").exit(2);
}
