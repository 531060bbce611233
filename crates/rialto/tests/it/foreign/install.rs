//! `rialto install`, judged by the clients themselves: each lists its servers, and ours is connected. The list of Codex starts no server, so
//! Codex has a model call a tool.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use crate::harness::{agent::SampleAgent, foreign_agent::ForeignAgent, interop, rialto::Rialto};

/// The key that Codex sends to its model, which checks none.
const MODEL_KEY: (&str, &str) = ("MODEL_KEY", "none-needed");

/// How Codex is run with nobody before it. It prints what happens as lines of JSON.
const CODEX_EXEC: [&str; 5] = ["codex", "exec", "--json", "--skip-git-repo-check", "Greet Ann."];

/// What a client prints when it is asked for its servers.
pub(super) fn listed(rialto: &Rialto, client: &str, variables: &[(&str, &str)]) -> String {
    run(rialto, &[client, "mcp", "list"], variables)
}

/// What a client prints, run with these words in this installation's home.
pub(super) fn run(rialto: &Rialto, words: &[&str], variables: &[(&str, &str)]) -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let cache = std::env::var_os("HOME").unwrap_or_default();
    let installed = std::env::var_os("RIALTO_INTEROP_HOME")
        .unwrap_or_else(|| Path::new(&cache).join(".cache/rialto/interop").into_os_string());
    let mut command = Command::new(interop());
    command.args(words).current_dir(rialto.folder()).env_clear();
    command.env("PATH", path).env("HOME", rialto.folder()).env("RIALTO_INTEROP_HOME", installed);
    command.env("GEMINI_API_KEY", "none-needed").env("DISABLE_AUTOUPDATER", "1");
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Installs into a symlinked file in a folder of the client's own, has the client list it, and takes it out again.
#[track_caller]
fn install_and_list(client: (&str, &str), variable: &str, file: &str, text: &str) -> String {
    install_and_run((client.0, &[]), variable, (file, text), &[client.1, "mcp", "list"])
}

/// Installs a client's entry with these options into a symlinked file in a folder of the client's own, runs the client, and takes the entry
/// out again. Returns what the client printed.
#[track_caller]
fn install_and_run(
    (client, options): (&str, &[&str]),
    variable: &str,
    (file, text): (&str, &str),
    words: &[&str],
) -> String {
    let folder = tempfile::tempdir().unwrap();
    let rialto = Rialto::fresh().with(variable, &folder.path().display().to_string());
    let (target, link) = (rialto.folder().join("dotfile"), folder.path().join(file));
    fs::write(&target, text).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(&target, &link).unwrap();
    rialto.cli(&[&["install", client, "--yes"], options].concat()).ok();
    let installed = fs::read_to_string(&target).unwrap();
    rialto.cli(&["install", "--check", client]).ok();
    let printed = run(&rialto, words, &[(variable, folder.path().to_str().unwrap()), MODEL_KEY]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "the symlink stays");
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    // Some clients write to their file whenever they run; what we wrote is restored from what we wrote.
    fs::write(&target, installed).unwrap();
    rialto.cli(&["uninstall", client, "--yes"]).ok();
    assert_eq!(fs::read_to_string(&target).unwrap(), text);
    printed
}

#[test]
fn claude_code_connects_with_the_entry_that_is_installed() {
    let text = "{\n  \"hasCompletedOnboarding\": true,\n  \"n\": 1.10\n}\n";
    let list = install_and_list(("claude-code", "claude_code"), "CLAUDE_CONFIG_DIR", ".claude.json", text);
    assert!(list.contains("rialto") && list.contains("Connected"), "{list}");
}

#[test]
fn gemini_cli_connects_with_the_entry_that_is_installed() {
    let text = "{\n  // mine\n  \"security\": { \"folderTrust\": { \"enabled\": false } } /* all */\n}\n";
    let list = install_and_list(("gemini", "gemini_cli"), "GEMINI_CLI_HOME", ".gemini/settings.json", text);
    assert!(list.contains("rialto") && list.contains("Connected"), "{list}");
}

#[test]
fn codex_has_the_entry_that_is_installed() {
    let text = "# mine\nmodel = \"x\" # why\n";
    let list = install_and_list(("codex", "codex"), "CODEX_HOME", "config.toml", text);
    assert!(list.contains("rialto") && list.contains("enabled"), "{list}");
}

/// A model on loopback that has Codex greet Ann with the skill `greet` of `desk`, and then says what the tool returned.
fn greeting_model() -> ForeignAgent {
    let words = ["--tool", "mcp__rialto.desk_greet", "--arguments", r#"{"name": "Ann"}"#];
    ForeignAgent::start("responses_model", &words)
}

/// Member of an entry that has Codex wait for the tools before the first turn, however slow this machine is.
const REQUIRED: &str = "required = true\n";

/// A configuration of Codex, with comments, for a model at this address.
fn codex_config(model: &str) -> String {
    format!(
        "# mine\nmodel = \"m\" # why\nmodel_provider = \"loopback\"\napproval_policy = \"never\"\n\
         check_for_update_on_startup = false\n\n[model_providers.loopback]\nname = \"loopback\"\n\
         base_url = \"{model}/v1\"\nenv_key = \"MODEL_KEY\"\nwire_api = \"responses\"\n\n\
         [analytics]\nenabled = false\n"
    )
}

/// Installs with these options where Codex looks when no variable says otherwise, and runs it. The entry is what `install` writes, and
/// [`REQUIRED`].
#[track_caller]
fn install_and_exec(
    rialto: &Rialto,
    model: &ForeignAgent,
    options: &[&str],
    variables: &[(&str, &str)],
) -> String {
    let config = rialto.folder().join(".codex/config.toml");
    fs::create_dir(config.parent().unwrap()).unwrap();
    fs::write(&config, codex_config(&model.url)).unwrap();
    rialto.cli(&[&["install", "codex", "--yes"], options].concat()).ok();
    fs::write(&config, fs::read_to_string(&config).unwrap() + REQUIRED).unwrap();
    run(rialto, &CODEX_EXEC, &[&[MODEL_KEY], variables].concat())
}

/// The tool was offered to the model and called, the agent was reached once, and the model read the answer.
#[track_caller]
fn assert_greeted(printed: &str, agent: &SampleAgent) {
    assert!(printed.contains("mcp__rialto.desk_greet returned:"), "{printed}");
    assert!(printed.contains("hello Ann"), "{printed}");
    let heard = agent.heard();
    assert!(matches!(heard.as_slice(), [only] if only.contains("Ann")), "{heard:?}");
}

#[test]
fn codex_starts_the_entry_that_is_installed_and_its_model_calls_an_agent() {
    let (agent, model) = (SampleAgent::named("Desk"), greeting_model());
    let text = codex_config(&model.url) + "\n[mcp_servers.rialto] # mine too\n" + REQUIRED;
    let options = ["--agent", &agent.url];
    let printed = install_and_run(("codex", &options), "CODEX_HOME", ("config.toml", &text), &CODEX_EXEC);
    assert_greeted(&printed, &agent);
}

#[test]
fn codex_does_not_refuse_to_call_an_agent_with_the_entry_that_is_installed() {
    let (rialto, agent, model) = (Rialto::with_defaults(), SampleAgent::named("Desk"), greeting_model());
    let printed = install_and_exec(&rialto, &model, &["--agent", &agent.url], &[]);
    assert_greeted(&printed, &agent);
}

#[test]
fn codex_connects_over_http_with_a_token_from_a_variable_and_its_model_calls_an_agent() {
    let (rialto, agent, model) = (Rialto::with_defaults(), SampleAgent::named("Desk"), greeting_model());
    rialto.cli(&["agents", "add", &agent.url, "--allow"]).ok();
    let server = rialto.serve(&[]);
    let made = rialto.json(&["tokens", "create", "client", "--json"]);
    let options = ["--http", &server.mcp(), "--token-env", "MY_TOKEN"];
    let token = ("MY_TOKEN", made["token"].as_str().unwrap());
    assert_greeted(&install_and_exec(&rialto, &model, &options, &[token]), &agent);
}

#[test]
fn opencode_connects_with_the_entry_that_is_installed() {
    let text = "{\n  // mine\n  \"autoupdate\": false,\n}\n";
    let list = install_and_list(("opencode", "opencode"), "XDG_CONFIG_HOME", "opencode/opencode.jsonc", text);
    assert!(list.contains("rialto") && list.contains("connected"), "{list}");
}

#[test]
fn clients_connect_over_http_with_a_token_from_a_variable() {
    let rialto = Rialto::fresh();
    let server = rialto.serve(&[]);
    let made = rialto.json(&["tokens", "create", "client", "--json"]);
    let (token, url) = (made["token"].as_str().unwrap(), format!("{}/mcp", server.url));
    let settings = rialto.folder().join(".gemini/settings.json");
    fs::create_dir(settings.parent().unwrap()).unwrap();
    fs::write(settings, r#"{"security":{"folderTrust":{"enabled":false}}}"#).unwrap();
    for (client, peer, word) in [
        ("claude-code", "claude_code", "Connected"),
        ("gemini", "gemini_cli", "Connected"),
        ("opencode", "opencode", "connected"),
        ("codex", "codex", "Bearer token"),
    ] {
        rialto.cli(&["install", client, "--http", &url, "--token-env", "MY_TOKEN", "--yes"]).ok();
        let list = listed(&rialto, peer, &[("MY_TOKEN", token)]);
        assert!(list.contains(&url) && list.contains(word), "{list}");
    }
}
