//! Our entry in a client's configuration, in the client's own words.

use std::path::Path;

use serde_json::{Map, Value, json};
use url::Url;

use super::clients::ENTRY_NAME;
use crate::{cli::ClientApp, environment::Environment};

/// Connection of a client to Rialto.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClientConnection {
    /// Program to start.
    Stdio { command: String, args: Vec<String> },
    /// URL to connect to.
    Http { url: String, authorization: Option<String> },
}

/// Members of the connection. Those that the new entry lacks are removed from an old one.
pub(super) const CONNECTION_MEMBERS: &[&str] = &[
    "type",
    "command",
    "cmd",
    "args",
    "url",
    "httpUrl",
    "serverUrl",
    "uri",
    "headers",
    "requestOptions",
    "bearer_token_env_var",
    "oauth",
    "env_keys",
];

/// Words of `rialto mcp` that the options of `rialto install` decide about.
#[derive(Debug, Default)]
pub(super) struct McpArguments<'a> {
    pub(super) agents: &'a [String],
    pub(super) data: Option<String>,
    pub(super) config: Option<String>,
}

/// Entry that starts the program at `command`.
pub(super) fn stdio_entry(client: ClientApp, command: &Path, args: &[String]) -> Value {
    match client {
        ClientApp::ClaudeCode | ClientApp::Vscode | ClientApp::Cline => {
            json!({ "type": "stdio", "command": command, "args": args })
        }
        ClientApp::ClaudeDesktop
        | ClientApp::Gemini
        | ClientApp::QwenCode
        | ClientApp::Cursor
        | ClientApp::Windsurf => {
            json!({ "command": command, "args": args })
        }
        // Without it, `codex exec` refuses every call, and an interactive session asks before each.
        ClientApp::Codex => {
            json!({ "command": command, "args": args, "default_tools_approval_mode": "approve" })
        }
        ClientApp::OpenCode => {
            let words: Vec<String> =
                std::iter::once(command.display().to_string()).chain(args.to_vec()).collect();
            json!({ "type": "local", "command": words, "enabled": true })
        }
        ClientApp::CopilotCli => json!({ "type": "local", "command": command, "args": args, "tools": ["*"] }),
        ClientApp::Zed => json!({ "command": command, "args": args, "env": {} }),
        ClientApp::Goose => json!({
            "enabled": true, "type": "stdio", "name": ENTRY_NAME, "description": "A2A agents and MCP tools",
            "cmd": command, "args": args, "envs": {}, "env_keys": [], "timeout": 300,
        }),
        ClientApp::Continue => {
            json!({ "name": ENTRY_NAME, "type": "stdio", "command": command, "args": args })
        }
    }
}

/// Entry that connects to `url`, with the token that the client finds in the variable `token`.
pub(super) fn http_entry(client: ClientApp, url: &str, token: Option<&str>) -> Result<Value, String> {
    let bearer = token.map(|name| authorization(client, name)).transpose()?;
    let mut entry = match client {
        ClientApp::ClaudeDesktop => {
            return Err("Claude Desktop's file has no HTTP servers; omit --http, or add the URL in its settings under Connectors".to_owned());
        }
        ClientApp::ClaudeCode | ClientApp::Vscode => json!({ "type": "http", "url": url }),
        ClientApp::Gemini | ClientApp::QwenCode => json!({ "httpUrl": url }),
        ClientApp::Cursor | ClientApp::Zed => json!({ "url": url }),
        ClientApp::Codex => {
            let mut entry = json!({ "url": url });
            if let Some(name) = token {
                entry["bearer_token_env_var"] = name.into();
            }
            entry["default_tools_approval_mode"] = "approve".into();
            return Ok(entry);
        }
        ClientApp::OpenCode => json!({ "type": "remote", "url": url, "enabled": true, "oauth": false }),
        ClientApp::Cline => json!({ "type": "streamableHttp", "url": url }),
        ClientApp::CopilotCli => json!({ "type": "http", "url": url, "tools": ["*"] }),
        ClientApp::Windsurf => json!({ "serverUrl": url }),
        ClientApp::Goose => json!({
            "enabled": true, "type": "streamable_http", "name": ENTRY_NAME, "description": "A2A agents and MCP tools",
            "uri": url, "envs": {}, "env_keys": token.into_iter().collect::<Vec<_>>(), "timeout": 300,
        }),
        ClientApp::Continue => json!({ "name": ENTRY_NAME, "type": "streamable-http", "url": url }),
    };
    if let Some(bearer) = bearer {
        let headers = json!({ "Authorization": bearer });
        match client {
            ClientApp::Continue => entry["requestOptions"] = json!({ "headers": headers }),
            _ => entry["headers"] = headers,
        }
    }
    Ok(entry)
}

/// Header with a reference to a variable, in the client's own syntax.
fn authorization(client: ClientApp, name: &str) -> Result<String, String> {
    Ok(match client {
        ClientApp::ClaudeCode
        | ClientApp::Gemini
        | ClientApp::QwenCode
        | ClientApp::CopilotCli
        | ClientApp::Goose => {
            format!("Bearer ${{{name}}}")
        }
        ClientApp::Cursor | ClientApp::Vscode | ClientApp::Windsurf => format!("Bearer ${{env:{name}}}"),
        ClientApp::OpenCode => format!("Bearer {{env:{name}}}"),
        ClientApp::Continue => format!("Bearer ${{{{ secrets.{name} }}}}"),
        ClientApp::Codex | ClientApp::ClaudeDesktop => String::new(),
        ClientApp::Cline | ClientApp::Zed => {
            return Err(format!(
                "{} reads no environment variables for headers, so the token would be stored in its file; omit --http (the program it starts needs no token), or omit --token-env and write the header yourself",
                client.name()
            ));
        }
    })
}

/// Arguments of `rialto mcp`: those that the entry has, with the agents and folders that are new.
pub(super) fn mcp_args(known: Option<&ClientConnection>, options: &McpArguments<'_>) -> Vec<String> {
    let known = match known {
        Some(ClientConnection::Stdio { args, .. }) if args.first().is_some_and(|word| word == "mcp") => {
            args.clone()
        }
        _ => vec!["mcp".to_owned()],
    };
    let mut args = known;
    for (flag, value) in [("--data", &options.data), ("--config", &options.config)] {
        let Some(value) = value else { continue };
        match args.iter().position(|word| word == flag) {
            Some(at) if at + 1 < args.len() => args[at + 1].clone_from(value),
            _ => args.extend([flag.to_owned(), value.clone()]),
        }
    }
    for url in options.agents {
        let is_known = args.windows(2).any(|words| words[0] == "--agent" && is_same_url(&words[1], url));
        if !is_known {
            args.extend(["--agent".to_owned(), url.clone()]);
        }
    }
    args
}

fn is_same_url(a: &str, b: &str) -> bool {
    a == b || matches!((Url::parse(a), Url::parse(b)), (Ok(a), Ok(b)) if a == b)
}

/// Checks an address that the user gave.
pub(super) fn check_url(option: &str, url: &str) -> Result<(), String> {
    let example = if option == "--http" {
        "https://rialto.example.com/mcp"
    } else {
        "https://agents.example.com/reviewer"
    };
    match Url::parse(url) {
        Ok(parsed) if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() => Ok(()),
        _ => Err(format!("{option} \"{url}\" is not a URL; give the whole address: {option} {example}")),
    }
}

/// Reads an entry of any client.
pub(super) fn connection(entry: &Value) -> Option<ClientConnection> {
    let text = |names: &[&str]| names.iter().find_map(|name| entry.get(name)?.as_str()).map(str::to_owned);
    let words = |value: Option<&Value>| -> Vec<String> {
        let items = value.and_then(Value::as_array).into_iter().flatten();
        items.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    if let Some(url) = text(&["url", "httpUrl", "serverUrl", "uri"]) {
        let headers = entry.get("headers").or_else(|| entry.get("requestOptions")?.get("headers"));
        let header = headers.and_then(|headers| headers.get("Authorization")?.as_str()).map(str::to_owned);
        let variable = text(&["bearer_token_env_var"]).map(|name| format!("Bearer ${{{name}}}"));
        return Some(ClientConnection::Http { url, authorization: header.or(variable) });
    }
    if let Some(command) = text(&["command", "cmd"]) {
        return Some(ClientConnection::Stdio { command, args: words(entry.get("args")) });
    }
    let mut command = words(entry.get("command")).into_iter();
    Some(ClientConnection::Stdio { command: command.next()?, args: command.collect() })
}

/// Replaces references to variables, in any client's syntax. The error is the name of a variable that is not set.
pub(super) fn expand(text: &str, environment: &Environment) -> Result<String, String> {
    let forms = [("${{ secrets.", " }}"), ("${env:", "}"), ("{env:", "}"), ("${", "}")];
    let Some((start, open, close)) =
        forms.iter().find_map(|(open, close)| text.find(open).map(|start| (start, *open, *close)))
    else {
        return Ok(text.to_owned());
    };
    let rest = &text[start + open.len()..];
    let Some(length) = rest.find(close) else {
        return Ok(text.to_owned());
    };
    let name = &rest[..length];
    let value = environment.get(name).ok_or_else(|| name.to_owned())?;
    Ok(format!("{}{value}{}", &text[..start], expand(&rest[length + close.len()..], environment)?))
}

/// Members of an entry.
pub(super) fn members(entry: Value) -> Map<String, Value> {
    match entry {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    fn environment() -> Environment {
        [("TOKEN".to_owned(), "s3cret".to_owned())].into_iter().collect()
    }

    #[test]
    fn every_entry_is_read_back_as_the_connection_it_was_written_for() {
        let args = ["mcp".to_owned(), "--agent".to_owned(), "https://a.example".to_owned()];
        for client in ClientApp::value_variants() {
            let entry = stdio_entry(*client, Path::new("/bin/rialto"), &args);
            let expected = ClientConnection::Stdio { command: "/bin/rialto".to_owned(), args: args.to_vec() };
            assert_eq!(connection(&entry), Some(expected), "{client:?}");
        }
    }

    #[test]
    fn every_client_that_reads_variables_gets_its_token_from_one() {
        let mut clients = 0;
        for client in ClientApp::value_variants() {
            let Ok(entry) = http_entry(*client, "https://r.example/mcp", Some("TOKEN")) else { continue };
            assert!(!entry.to_string().contains("s3cret"));
            let Some(ClientConnection::Http { url, authorization: Some(header) }) = connection(&entry) else {
                panic!("{client:?}: {entry}");
            };
            assert_eq!(url, "https://r.example/mcp");
            assert_eq!(expand(&header, &environment()), Ok("Bearer s3cret".to_owned()), "{client:?}");
            clients += 1;
        }
        assert_eq!(clients, ClientApp::value_variants().len() - 3, "all but Claude Desktop, Cline and Zed");
    }

    #[test]
    fn agents_are_merged_and_other_words_stay() {
        let known = ClientConnection::Stdio {
            command: "rialto".to_owned(),
            args: ["mcp", "--names", "legacy", "--agent", "https://a.example", "--data", "/old"]
                .map(str::to_owned)
                .to_vec(),
        };
        let agents = ["https://a.example/".to_owned(), "https://b.example".to_owned()];
        let options = McpArguments { agents: &agents, data: Some("/new".to_owned()), config: None };
        let words = [
            "mcp",
            "--names",
            "legacy",
            "--agent",
            "https://a.example",
            "--data",
            "/new",
            "--agent",
            "https://b.example",
        ];
        assert_eq!(mcp_args(Some(&known), &options), words);
        let http = ClientConnection::Http { url: "http://x".to_owned(), authorization: None };
        assert_eq!(mcp_args(Some(&http), &McpArguments::default()), ["mcp"]);
    }

    #[test]
    fn an_address_that_is_no_url_is_refused_with_an_example() {
        assert!(check_url("--agent", "https://a.example/x").is_ok());
        for wrong in ["not-a-url", "agents.example.com", "file:///x", "localhost:8080"] {
            assert!(check_url("--agent", wrong).unwrap_err().contains("--agent https://"), "{wrong}");
        }
    }
}
