//! Configuration files of MCP clients: location and format.

use std::path::{Path, PathBuf};

use super::yaml_text::{EntryPlace, ServersShape};
use crate::{cli::ClientApp, environment::Environment, output::CommandError};

/// Our name in every client's configuration.
pub(super) const ENTRY_NAME: &str = "rialto";

/// Syntax of a configuration file, and where servers are in it.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConfigFormat {
    /// JSON with comments; servers are members of this member.
    Json(&'static str),
    /// TOML; servers are tables below this one.
    Toml(&'static str),
    /// YAML; the text starts a file that does not exist yet.
    Yaml(EntryPlace, &'static str),
}

/// Folders that paths are made from.
struct ConfigFolders<'a> {
    home: PathBuf,
    environment: &'a Environment,
}

/// The file that a client reads, by its own environment variables.
pub(super) fn config_path(client: ClientApp, environment: &Environment) -> Result<PathBuf, CommandError> {
    let home = environment.get("HOME").or_else(|| environment.get("USERPROFILE"));
    let home = home.ok_or_else(|| CommandError::failed("the home folder is not known: set HOME"))?;
    let folders = ConfigFolders { home: PathBuf::from(home), environment };
    let path = match client {
        ClientApp::ClaudeCode => folders.claude_code(),
        ClientApp::ClaudeDesktop => folders.application("Claude").join("claude_desktop_config.json"),
        ClientApp::Gemini => folders.variable("GEMINI_CLI_HOME", "").join(".gemini/settings.json"),
        ClientApp::Codex => folders.variable("CODEX_HOME", ".codex").join("config.toml"),
        ClientApp::Cursor => folders.home.join(".cursor/mcp.json"),
        ClientApp::Vscode => folders.vscode().join("mcp.json"),
        ClientApp::OpenCode => folders.opencode(),
        ClientApp::QwenCode => folders.variable("QWEN_HOME", ".qwen").join("settings.json"),
        ClientApp::Cline => folders.cline(),
        ClientApp::CopilotCli => folders.variable("COPILOT_HOME", ".copilot").join("mcp-config.json"),
        ClientApp::Zed => folders.zed().join("settings.json"),
        ClientApp::Windsurf => folders.home.join(".codeium/windsurf/mcp_config.json"),
        ClientApp::Goose => folders.goose().join("config.yaml"),
        ClientApp::Continue => folders.variable("CONTINUE_GLOBAL_DIR", ".continue").join("config.yaml"),
    };
    // The client is started elsewhere; what is relative here would be another file there.
    std::path::absolute(&path).map_err(|error| CommandError::failed(format!("{}: {error}", path.display())))
}

pub(super) const fn format(client: ClientApp) -> ConfigFormat {
    match client {
        ClientApp::ClaudeCode
        | ClientApp::ClaudeDesktop
        | ClientApp::CopilotCli
        | ClientApp::Windsurf
        | ClientApp::Cline
        | ClientApp::Gemini
        | ClientApp::Cursor
        | ClientApp::QwenCode => ConfigFormat::Json("mcpServers"),
        ClientApp::Vscode => ConfigFormat::Json("servers"),
        ClientApp::OpenCode => ConfigFormat::Json("mcp"),
        ClientApp::Zed => ConfigFormat::Json("context_servers"),
        ClientApp::Codex => ConfigFormat::Toml("mcp_servers"),
        ClientApp::Goose => ConfigFormat::Yaml(
            EntryPlace { key: "extensions", name: ENTRY_NAME, shape: ServersShape::Mapping },
            "",
        ),
        ClientApp::Continue => ConfigFormat::Yaml(
            EntryPlace { key: "mcpServers", name: ENTRY_NAME, shape: ServersShape::List },
            "name: Local Config\nversion: 1.0.0\nschema: v1\n",
        ),
    }
}

// === impl ConfigFolders ===

impl ConfigFolders<'_> {
    /// The folder that a variable names, else one below the home folder.
    fn variable(&self, name: &str, below_home: &str) -> PathBuf {
        self.environment.get(name).map_or_else(|| self.home.join(below_home), PathBuf::from)
    }

    /// `XDG_CONFIG_HOME`, which counts only if it is absolute.
    fn xdg_config(&self) -> PathBuf {
        let named =
            self.environment.get("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        named.unwrap_or_else(|| self.home.join(".config"))
    }

    /// The folder of a desktop application.
    fn application(&self, name: &str) -> PathBuf {
        if cfg!(target_os = "macos") {
            return self.home.join("Library/Application Support").join(name);
        }
        let roaming = self.environment.get("APPDATA").filter(|_| cfg!(windows)).map(PathBuf::from);
        roaming.unwrap_or_else(|| self.xdg_config()).join(name)
    }

    fn claude_code(&self) -> PathBuf {
        let folder = self.variable("CLAUDE_CONFIG_DIR", ".claude");
        let early = folder.join(".config.json");
        if early.exists() {
            return early;
        }
        self.variable("CLAUDE_CONFIG_DIR", "").join(".claude.json")
    }

    fn vscode(&self) -> PathBuf {
        if let Some(portable) = self.environment.get("VSCODE_PORTABLE") {
            return Path::new(portable).join("user-data/User");
        }
        let appdata = self.environment.get("VSCODE_APPDATA").map(|folder| Path::new(folder).join("Code"));
        appdata.unwrap_or_else(|| self.application("Code")).join("User")
    }

    /// All of its files are read; the entry is written to an existing one.
    fn opencode(&self) -> PathBuf {
        if let Some(file) = self.environment.get("OPENCODE_CONFIG") {
            return PathBuf::from(file);
        }
        let xdg =
            self.environment.get("XDG_CONFIG_HOME").map_or_else(|| self.home.join(".config"), PathBuf::from);
        let folder =
            self.environment.get("OPENCODE_CONFIG_DIR").map_or_else(|| xdg.join("opencode"), PathBuf::from);
        let known = ["opencode.jsonc", "opencode.json"].map(|name| folder.join(name));
        known.into_iter().find(|path| path.exists()).unwrap_or_else(|| folder.join("opencode.json"))
    }

    /// Its command line and newer extensions share a file; older extensions have one in VS Code's folder.
    fn cline(&self) -> PathBuf {
        if let Some(file) = self.environment.get("CLINE_MCP_SETTINGS_PATH") {
            return PathBuf::from(file);
        }
        let data = self.environment.get("CLINE_DATA_DIR").map(PathBuf::from);
        let data = data.unwrap_or_else(|| self.variable("CLINE_DIR", ".cline").join("data"));
        let shared = data.join("settings/cline_mcp_settings.json");
        let extension = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
        let extension = self.vscode().join(extension);
        if !data.exists() && extension.exists() { extension } else { shared }
    }

    fn zed(&self) -> PathBuf {
        if cfg!(target_os = "macos") {
            return self.home.join(".config/zed");
        }
        let flatpak = self.environment.get("FLATPAK_XDG_CONFIG_HOME").map(PathBuf::from);
        flatpak
            .unwrap_or_else(|| if cfg!(windows) { self.application("") } else { self.xdg_config() })
            .join("zed")
    }

    fn goose(&self) -> PathBuf {
        let root =
            self.environment.get("GOOSE_PATH_ROOT").map(PathBuf::from).filter(|path| path.is_absolute());
        match root {
            Some(root) => root.join("config"),
            None if cfg!(windows) => self.application("Block/goose/config"),
            None => self.xdg_config().join("goose"),
        }
    }
}
