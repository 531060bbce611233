//! `rialto install <client>`: writes the entry for Rialto into an MCP client's own configuration.
//!
//! Each client keeps its servers in a file of its own; the change is shown before anything is written, everything
//! else in the file stays as it is, and the old file is kept beside it.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use crate::{
    cli::{Client, Install},
    environment::Environment,
    output::{self, Trouble},
};

/// How a client writes its servers down.
enum Format {
    /// JSON, under this member.
    Json(&'static str),
    /// TOML, as `[mcp_servers.rialto]`.
    Toml,
}

pub(crate) fn run(options: &Install, environment: &Environment) -> Result<(), Trouble> {
    let (path, format) = place(options.client, environment)?;
    let program = std::env::current_exe()
        .map_err(|error| Trouble::other(format!("this program cannot be found: {error}")))?;
    let mut args = vec!["mcp".to_owned()];
    args.extend(options.agents.iter().flat_map(|url| ["--agent".to_owned(), url.clone()]));
    let before = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Trouble::other(format!("{}: {error}", path.display()))),
    };
    let after = match format {
        Format::Json(member) => with_json(&before, member, options.client, &program, &args),
        Format::Toml => with_toml(&before, &program, &args),
    }
    .map_err(|reason| Trouble::other(format!("{}: {reason}; nothing was changed", path.display())))?;
    if after == before {
        output::line(format!("{} already has this entry", path.display()));
        return Ok(());
    }
    show(&path, &before, &after);
    if options.dry_run || !(options.yes || agreed()?) {
        output::line("nothing was written");
        return Ok(());
    }
    write(&path, &before, &after).map_err(|error| Trouble::other(format!("{}: {error}", path.display())))?;
    output::line(format!("written to {}; restart the client to see it", path.display()));
    Ok(())
}

fn place(client: Client, environment: &Environment) -> Result<(PathBuf, Format), Trouble> {
    let home = environment.get("HOME").or_else(|| environment.get("USERPROFILE"));
    let home = PathBuf::from(home.ok_or_else(|| Trouble::other("there is no home folder: HOME is not set"))?);
    let config = environment.get("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    let in_system = |linux: &str, mac: &str| {
        if cfg!(target_os = "macos") {
            home.join("Library/Application Support").join(mac)
        } else {
            config.join(linux)
        }
    };
    Ok(match client {
        Client::ClaudeCode => (home.join(".claude.json"), Format::Json("mcpServers")),
        Client::ClaudeDesktop => {
            let file = "Claude/claude_desktop_config.json";
            (in_system(file, file), Format::Json("mcpServers"))
        }
        Client::Gemini => (home.join(".gemini/settings.json"), Format::Json("mcpServers")),
        Client::Cursor => (home.join(".cursor/mcp.json"), Format::Json("mcpServers")),
        Client::Vscode => {
            let file = "Code/User/mcp.json";
            (in_system(file, file), Format::Json("servers"))
        }
        Client::Codex => (home.join(".codex/config.toml"), Format::Toml),
    })
}

fn with_json(
    before: &str,
    member: &str,
    client: Client,
    program: &Path,
    args: &[String],
) -> Result<String, String> {
    let mut whole: Value = if before.trim().is_empty() {
        json!({})
    } else {
        serde_json::from_str(before).map_err(|error| format!("this is not plain JSON ({error})"))?
    };
    let mut entry = json!({ "command": program, "args": args });
    if matches!(client, Client::Vscode | Client::ClaudeCode) {
        entry["type"] = json!("stdio");
    }
    let root = whole.as_object_mut().ok_or("this is not a JSON object")?;
    let servers = root.entry(member).or_insert_with(|| Value::Object(Map::new()));
    let servers = servers.as_object_mut().ok_or_else(|| format!("\"{member}\" is not an object"))?;
    if servers.get("rialto") == Some(&entry) {
        return Ok(before.to_owned());
    }
    servers.insert("rialto".to_owned(), entry);
    serde_json::to_string_pretty(&whole).map(|text| text + "\n").map_err(|error| error.to_string())
}

/// Adds the section at the end; a file that has one already is left to its owner, because comments matter in TOML.
fn with_toml(before: &str, program: &Path, args: &[String]) -> Result<String, String> {
    let table: toml::Table = before.parse().map_err(|error| format!("this is not TOML ({error})"))?;
    let entry = toml::Value::try_from(json!({ "command": program, "args": args }))
        .map_err(|error| error.to_string())?;
    match table.get("mcp_servers").and_then(|servers| servers.get("rialto")) {
        Some(known) if *known == entry => Ok(before.to_owned()),
        Some(_) => Err("there is another [mcp_servers.rialto] already; remove it first".to_owned()),
        None => {
            let section = toml::to_string(&entry).map_err(|error| error.to_string())?;
            let gap = if before.is_empty() {
                ""
            } else if before.ends_with('\n') {
                "\n"
            } else {
                "\n\n"
            };
            Ok(format!("{before}{gap}[mcp_servers.rialto]\n{section}"))
        }
    }
}

/// The lines that come and go, in order.
fn show(path: &Path, before: &str, after: &str) {
    output::line(format!("{}:", path.display()));
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev()).take_while(|(a, b)| a == b).count();
    for text in &old[same..old.len() - rest] {
        output::line(format!("- {text}"));
    }
    for text in &new[same..new.len() - rest] {
        output::line(format!("+ {text}"));
    }
}

fn agreed() -> Result<bool, Trouble> {
    if !std::io::stdin().is_terminal() {
        return Err(Trouble::usage("nobody is here to be asked; say --yes to write it"));
    }
    let mut out = std::io::stdout();
    let _ = write!(out, "Write this? [y/N] ");
    let _ = out.flush();
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| Trouble::other(error.to_string()))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn write(path: &Path, before: &str, after: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    if !before.is_empty() {
        std::fs::copy(path, path.with_extension("before-rialto"))?;
    }
    let draft = path.with_extension("rialto-draft");
    std::fs::write(&draft, after)?;
    std::fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_else_in_the_file_stays() {
        let before = r#"{"theme":"dark","mcpServers":{"other":{"command":"x"}}}"#;
        let after =
            with_json(before, "mcpServers", Client::Gemini, Path::new("/bin/rialto"), &["mcp".into()])
                .unwrap();
        let after: Value = serde_json::from_str(&after).unwrap();
        assert_eq!(after["theme"], "dark");
        assert_eq!(after["mcpServers"]["other"]["command"], "x");
        assert_eq!(after["mcpServers"]["rialto"]["args"], json!(["mcp"]));
    }

    #[test]
    fn a_file_that_is_not_json_is_left_alone() {
        assert!(with_json("{ // mine\n}", "mcpServers", Client::Cursor, Path::new("r"), &[]).is_err());
    }

    #[test]
    fn toml_keeps_its_comments() {
        let after = with_toml("# mine\nmodel = \"x\"\n", Path::new("/bin/rialto"), &["mcp".into()]).unwrap();
        assert!(after.starts_with("# mine\nmodel = \"x\"\n\n[mcp_servers.rialto]\n"));
        assert_eq!(with_toml(&after, Path::new("/bin/rialto"), &["mcp".into()]).unwrap(), after);
    }
}
