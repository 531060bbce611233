//! Entries in the configurations of MCP clients: written, checked, and taken out again.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::harness::rialto::Rialto;

const CLIENTS: [(&str, &str); 14] = [
    ("claude-code", ".claude.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("gemini", ".gemini/settings.json"),
    ("codex", ".codex/config.toml"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("qwen-code", ".qwen/settings.json"),
    ("cline", ".cline/data/settings/cline_mcp_settings.json"),
    ("copilot-cli", ".copilot/mcp-config.json"),
    ("zed", ".config/zed/settings.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("goose", ".config/goose/config.yaml"),
    ("continue", ".continue/config.yaml"),
];

#[track_caller]
fn write(path: PathBuf, text: &str, mode: u32) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[track_caller]
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[track_caller]
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[track_caller]
fn json_of(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

#[test]
fn the_entry_for_a_client_is_shown_before_it_is_written_and_everything_else_stays() {
    let rialto = Rialto::fresh();
    let file = write(rialto.folder().join(".gemini/settings.json"), r#"{"theme":"dark"}"#, 0o644);
    let install = ["install", "gemini", "--agent", "https://agents.example.com/reviewer"];
    let said = rialto.cli(&[&install[..], &["--dry-run"]].concat()).ok();
    assert!(said.out.contains("agents.example.com/reviewer"), "{}", said.out);
    assert_eq!(read(&file), r#"{"theme":"dark"}"#);
    let said = rialto.cli(&install).exit(2);
    assert!(said.err.contains("--yes"), "{}", said.err);
    rialto.cli(&[&install[..], &["--yes"]].concat()).ok();
    let written = json_of(&file);
    assert_eq!(written["theme"], "dark");
    let data = rialto.data().display().to_string();
    let args = json!(["mcp", "--data", data, "--agent", "https://agents.example.com/reviewer"]);
    assert_eq!(written["mcpServers"]["rialto"]["args"], args);
    assert!(rialto.cli(&[&install[..], &["--yes"]].concat()).ok().out.contains("already"));
}

#[test]
fn every_client_gets_an_entry_that_connects_and_loses_it_without_a_trace() {
    let rialto = Rialto::fresh();
    for (client, path) in CLIENTS {
        let path = rialto.folder().join(path);
        rialto.cli(&["install", client, "--yes"]).ok();
        assert!(path.exists(), "{client}: {}", path.display());
        let said = rialto.cli(&["install", "--check", client]).ok();
        assert!(
            said.out.contains(&format!("{client} connects")) && said.out.contains("tools"),
            "{}",
            said.out
        );
        rialto.cli(&["uninstall", client, "--yes"]).ok();
        let name = path.file_name().unwrap().to_str().unwrap();
        let files = fs::read_dir(path.parent().unwrap()).unwrap().map(|file| file.unwrap().file_name());
        let left: Vec<_> = files.filter(|file| file.to_str().unwrap().starts_with(name)).collect();
        assert_eq!(left, Vec::<std::ffi::OsString>::new(), "{client}");
    }
}

#[test]
fn a_private_file_stays_private() {
    let rialto = Rialto::fresh();
    let file = write(rialto.folder().join(".claude.json"), "{}", 0o600);
    rialto.cli(&["install", "claude-code", "--yes"]).ok();
    assert!(read(&file).contains("rialto"));
    assert_eq!(format!("{:o}", mode(&file)), "600", "others could read what the client keeps there");
}

#[test]
fn a_second_installation_keeps_the_backup_of_the_first() {
    let rialto = Rialto::fresh();
    let text = "{\"theme\":\"dark\"}";
    write(rialto.folder().join(".gemini/settings.json"), text, 0o644);
    for agent in ["https://a.example", "https://b.example"] {
        rialto.cli(&["install", "gemini", "--agent", agent, "--yes"]).ok();
    }
    let files = fs::read_dir(rialto.folder().join(".gemini")).unwrap().map(|file| file.unwrap().path());
    let backups: Vec<String> = files
        .filter(|file| file.to_str().unwrap().ends_with("before-rialto"))
        .map(|file| read(&file))
        .collect();
    assert_eq!(backups, [text]);
}

#[test]
fn a_private_file_stays_private_and_its_symlink_a_symlink() {
    let rialto = Rialto::fresh();
    let text = "{\n  \"big\": 12345678901234567890.10\n}\n";
    let target = write(rialto.folder().join("dotfiles/claude.json"), text, 0o600);
    let link = rialto.folder().join(".claude.json");
    symlink("dotfiles/claude.json", &link).unwrap();
    rialto.cli(&["install", "claude-code", "--yes"]).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(read(&target).contains("12345678901234567890.10") && read(&target).contains("rialto"));
    let backup = rialto.folder().join(".claude.json.before-rialto");
    assert_eq!((mode(&target), mode(&backup), read(&backup)), (0o600, 0o600, text.to_owned()));
    rialto.cli(&["uninstall", "claude-code", "--yes"]).ok();
    assert_eq!((mode(&target), read(&target)), (0o600, text.to_owned()));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && !backup.exists());
}

#[test]
fn comments_stay_in_every_format_and_uninstall_restores_each_byte() {
    let rialto = Rialto::fresh();
    for (client, path, text) in [
        ("gemini", ".gemini/settings.json", "{\n  // mine\n  \"a\": [1,], /* b */\n}"),
        ("zed", ".config/zed/settings.json", "// mine\n{\r\n\t\"context_servers\": { /* none */ }\r\n}\r\n"),
        (
            "codex",
            ".codex/config.toml",
            "# mine\nmodel = \"x\" # why\n\n[mcp_servers.other]\ncommand = \"y\"",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "# mine\nextensions: # all\n  developer:\n    enabled: true\n",
        ),
        ("continue", ".continue/config.yaml", "name: c # mine\nmcpServers:\n- name: other\n  command: x\n"),
    ] {
        let file = write(rialto.folder().join(path), text, 0o644);
        rialto.cli(&["install", client, "--yes"]).ok();
        let with = read(&file);
        assert!(with.contains("mine") && with.contains("rialto"), "{with}");
        rialto.cli(&["install", "--check", client]).ok();
        rialto.cli(&["uninstall", client, "--yes"]).ok();
        assert_eq!(read(&file), text, "{client}");
    }
}

#[test]
fn a_file_that_has_changed_since_loses_only_the_entry_and_the_backup_stays() {
    let rialto = Rialto::fresh();
    let file = write(rialto.folder().join(".cursor/mcp.json"), "{\n  \"mcpServers\": {}\n}\n", 0o644);
    rialto.cli(&["install", "cursor", "--yes"]).ok();
    let changed = read(&file)
        .replace("\"mcpServers\": {", "\"mcpServers\": {\n    \"mine\": { \"command\": \"x\" }, // new");
    fs::write(&file, &changed).unwrap();
    rialto.cli(&["install", "cursor", "--agent", "https://a.example", "--yes"]).ok();
    let backup = rialto.folder().join(".cursor/mcp.json.before-rialto");
    assert_eq!(read(&backup), "{\n  \"mcpServers\": {}\n}\n", "the first backup is kept");
    fs::write(&file, format!("// later\n{}", read(&file))).unwrap();
    rialto.cli(&["uninstall", "cursor", "--yes"]).ok();
    let left = read(&file);
    assert_eq!(
        left,
        "// later\n{\n  \"mcpServers\": {\n    \"mine\": { \"command\": \"x\" } // new\n  }\n}\n"
    );
    assert!(rialto.cli(&["uninstall", "cursor", "--yes"]).ok().out.contains("no entry"));
}

#[test]
fn each_clients_own_variables_say_where_its_file_is() {
    let mut wrong = Vec::new();
    for (client, variable, path) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("vscode", "VSCODE_PORTABLE", "user-data/User/mcp.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("opencode", "OPENCODE_CONFIG", ""),
        ("qwen-code", "QWEN_HOME", "settings.json"),
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
        ("goose", "GOOSE_PATH_ROOT", "config/config.yaml"),
        ("continue", "CONTINUE_GLOBAL_DIR", "config.yaml"),
    ] {
        let elsewhere = tempfile::tempdir().unwrap();
        let place = elsewhere.path().join("place");
        let rialto = Rialto::fresh().with(variable, &place.display().to_string());
        let said = rialto.cli(&["install", client, "--yes"]);
        let file = if path.is_empty() { place } else { place.join(path) };
        let is_there = fs::read_to_string(&file).is_ok_and(|text| text.contains("rialto"));
        let is_elsewhere = fs::read_dir(rialto.folder()).unwrap().count() > 0;
        if said.status != 0 || !is_there || is_elsewhere {
            wrong.push(format!(
                "{client} with {variable}: there {is_there}, below the home folder {is_elsewhere}"
            ));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn an_agent_that_is_no_url_is_refused_and_nothing_is_written() {
    let rialto = Rialto::fresh();
    for wrong in ["not-a-url", "agents.example.com"] {
        let said = rialto.cli(&["install", "cursor", "--agent", wrong, "--yes"]).exit(2);
        assert!(said.err.contains(wrong) && said.err.contains("--agent https://"), "{}", said.err);
    }
    assert!(!rialto.folder().join(".cursor/mcp.json").exists());
}

#[test]
fn agents_are_merged_and_folders_are_carried_into_the_entry() {
    let rialto = Rialto::fresh();
    let file = rialto.folder().join(".cursor/mcp.json");
    let first = ["install", "cursor", "--agent", "https://a.example", "--data", "elsewhere", "--yes"];
    rialto.cli(&first).ok();
    rialto
        .cli(&[
            "install",
            "cursor",
            "--agent",
            "https://b.example",
            "--config",
            "r.toml",
            "--data",
            "elsewhere",
            "--yes",
        ])
        .ok();
    let folder = rialto.folder().display();
    let (data, config) = (format!("{folder}/elsewhere"), format!("{folder}/r.toml"));
    let args = json!([
        "mcp",
        "--data",
        data,
        "--agent",
        "https://a.example",
        "--config",
        config,
        "--agent",
        "https://b.example"
    ]);
    assert_eq!(json_of(&file)["mcpServers"]["rialto"]["args"], args);
}

#[test]
fn codex_is_told_that_its_model_may_call() {
    let rialto = Rialto::fresh();
    rialto.cli(&["install", "codex", "--yes"]).ok();
    let text = read(&rialto.folder().join(".codex/config.toml"));
    assert!(text.contains("default_tools_approval_mode = \"approve\""), "{text}");
}

#[test]
fn an_http_entry_takes_its_token_from_a_variable_and_is_checked_with_it() {
    let rialto = Rialto::fresh();
    let server = rialto.serve(&[]);
    let made = rialto.json(&["tokens", "create", "client", "--json"]);
    let token = made["token"].as_str().unwrap().to_owned();
    let url = format!("{}/mcp", server.url);
    for (client, _) in CLIENTS {
        let install = ["install", client, "--http", &url, "--token-env", "MY_TOKEN", "--yes"];
        if ["claude-desktop", "cline", "zed"].contains(&client) {
            assert!(rialto.cli(&install).exit(2).err.contains("omit --http"), "{client}");
            continue;
        }
        rialto.cli(&install).ok();
        let said = rialto.cli(&["install", "--check", client]).exit(1);
        assert!(said.err.contains("MY_TOKEN") && said.err.contains("Fix: export"), "{}", said.err);
    }
    let rialto = rialto.with("MY_TOKEN", &token);
    for (client, path) in
        CLIENTS.into_iter().filter(|(client, _)| !["claude-desktop", "cline", "zed"].contains(client))
    {
        let said = rialto.cli(&["install", "--check", client]).ok();
        assert!(said.out.contains(&format!("calls {url}")), "{}", said.out);
        assert!(!read(&rialto.folder().join(path)).contains(&token), "{client}");
    }
    let rialto = rialto.with("MY_TOKEN", "wrong");
    let said = rialto.cli(&["install", "--check", "codex"]).exit(1);
    assert!(said.err.contains("401") && said.err.contains("rialto tokens create"), "{}", said.err);
}

#[test]
fn check_says_why_a_client_would_not_connect_and_how_to_fix_it() {
    let rialto = Rialto::fresh();
    let said = rialto.cli(&["install", "--check", "cursor"]).exit(1);
    assert!(said.err.contains("no entry") && said.err.contains("Fix: rialto install cursor"), "{}", said.err);
    let file = rialto.folder().join(".cursor/mcp.json");
    for (entry, reason) in [
        (r#"{"command": "/nowhere/rialto", "args": ["mcp"]}"#, "/nowhere/rialto does not start"),
        (r#"{"command": "/bin/false"}"#, "ended"),
        (r#"{"command": "/bin/echo", "args": ["hello"]}"#, "no JSON: hello"),
        (r#"{"url": "http://127.0.0.1:1/mcp"}"#, "could not be reached"),
        (r#"{"command": "/bin/cat", "disabled": true}"#, "disabled"),
        ("{}", "neither a command nor a URL"),
    ] {
        write(file.clone(), &format!(r#"{{"mcpServers": {{"rialto": {entry}}}}}"#), 0o644);
        let said = rialto.cli(&["install", "--check", "cursor"]).exit(1);
        assert!(said.err.contains(reason) && said.err.contains("Fix: "), "{entry}: {}", said.err);
    }
}

#[test]
fn a_file_that_cannot_be_edited_is_left_alone_with_what_to_paste() {
    let rialto = Rialto::fresh();
    for (client, path, text, paste) in [
        ("cursor", ".cursor/mcp.json", "{ nonsense", "\"mcpServers\": {"),
        (
            "codex",
            ".codex/config.toml",
            "mcp_servers = { other = { command = \"x\" } }\n",
            "[mcp_servers.rialto]",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            "extensions: {developer: {enabled: true}}\n",
            "extensions:\n  rialto:\n",
        ),
    ] {
        let file = write(rialto.folder().join(path), text, 0o644);
        let said = rialto.cli(&["install", client, "--yes"]).exit(1);
        assert!(said.err.contains("nothing was changed") && said.err.contains(paste), "{}", said.err);
        assert_eq!(read(&file), text);
    }
}

#[test]
fn a_client_that_rewrites_its_file_is_left_with_what_it_wrote() {
    let rialto = Rialto::fresh();
    let file = write(rialto.folder().join(".claude.json"), "{}", 0o600);
    rialto.cli(&["install", "claude-code", "--yes"]).ok();
    let mut whole = json_of(&file);
    whole["userID"] = json!("u");
    fs::write(&file, whole.to_string()).unwrap();
    rialto.cli(&["uninstall", "claude-code", "--yes"]).ok();
    assert_eq!(read(&file), r#"{"userID":"u"}"#);
}
