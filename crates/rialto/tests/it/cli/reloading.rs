//! `rialto.toml` is edited while a server runs: what can be changed is, what is wrong changes nothing, and the log says the rest.

use std::fs;

use serde_json::json;

use crate::harness::{http, rialto::Rialto, server::ServerProcess, until};

const UP: &str = "[[functions]]\nname = \"up\"\ncommand = [\"tr\", \"a-z\", \"A-Z\"]\n";

const FLOW: &str = "name: twice\nnodes:\n  - id: a\n    tool: up\n    args: { a: b }\n";

fn write(rialto: &Rialto, text: &str) {
    fs::write(rialto.folder().join("rialto.toml"), text).unwrap();
}

fn status(server: &ServerProcess, name: &str) -> u16 {
    http::post(&format!("{}/call/{name}", server.url), &[], r#"{"a":"b"}"#).status
}

#[test]
fn tools_come_and_go_with_the_file_and_a_mistake_changes_nothing() {
    let rialto = Rialto::fresh().with("PATH", "/usr/bin:/bin");
    // There need not be a file when the server starts.
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(status(&server, "up"), 404);
    write(&rialto, UP);
    until("it is deployed", || (status(&server, "up") == 200).then_some(()));
    write(&rialto, &format!("{UP}[[functions]]\nname = \"down\"\n"));
    until("the mistake is logged", || server.log().contains("functions[1]").then_some(()));
    assert!(server.log().contains("the previous one stays active"), "{}", server.log());
    assert_eq!(status(&server, "up"), 200);
    write(&rialto, "");
    until("it is gone", || (status(&server, "up") == 404).then_some(()));
}

#[test]
fn limits_and_workflows_change_and_what_cannot_is_named() {
    let rialto = Rialto::fresh().with("PATH", "/usr/bin:/bin");
    write(&rialto, UP);
    let server = rialto.serve(&["--allow-no-auth"]);
    assert_eq!(status(&server, "up"), 200);
    let folder = rialto.folder().join("flows");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("twice.yaml"), FLOW).unwrap();
    write(&rialto, &format!("{UP}[flows]\nfolder = \"flows\"\n[server]\ndrain_secs = 7\n"));
    let flows = || rialto.json(&["workflow", "list", "--json"]).to_string();
    until("the restart is asked for", || {
        server.log().contains("count after a restart: [server]").then_some(())
    });
    assert!(flows().contains("twice"), "{}", flows());
    fs::write(folder.join("thrice.yaml"), FLOW.replace("twice", "thrice")).unwrap();
    until("a new file in the folder is seen", || flows().contains("thrice").then_some(()));
    let limits = "[limits.orgs.default]\ncalls_per_day = 1\n";
    write(&rialto, &format!("{UP}{limits}"));
    until("the limit counts", || (status(&server, "up") == 429).then_some(()));
    write(&rialto, UP);
    until("it does not any more", || (status(&server, "up") == 200).then_some(()));
    assert!(!flows().contains("twice"), "{}", flows());
    let told = json!(server.log());
    assert!(!told.to_string().contains("[limits]"), "{told}");
}
