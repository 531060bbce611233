//! A small MCP server as a shell script: it speaks 2025-06-18 on stdin and stdout, or with `$MODERN` set 2026-07-28, and some
//! of its tools misbehave. With `$BRITTLE` set it ends when it is asked for what it does not know.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use super::{rialto::Rialto, until};

/// The script. Its tools are the lines of the file `$TOOLS`.
const SCRIPT: &str = r#"#!/bin/sh
echo $$ >"$TOOLS.pid"
list() {
  tools=""
  for name in $(cat "$TOOLS"); do
    tools="$tools${tools:+,}{\"name\":\"$name\",\"description\":\"Does $name\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}},\"annotations\":{\"readOnlyHint\":true}}"
  done
  printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}\n' "$1" "$tools"
}
task() { printf '"taskId":"t1","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null,"pollIntervalMs":100'; }
text() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}],"isError":%s}}\n' "$1" "$2" "$3"; }
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  token=$(printf '%s' "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) if [ -n "$MODERN" ]; then
        printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private"}}\n' "$id"
      elif [ -n "$BRITTLE" ]; then exit 1
      else printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"; fi ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"sh","version":"7"}}}\n' "$id" ;;
    *'"tools/list"'*) list "$id" ;;
    *'"name":"echo"'*) text "$id" "hello from $NAME" false ;;
    *'"name":"fail"'*) text "$id" "no luck" true ;;
    *'"name":"slowly"'*)
      printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"total":2,"message":"half way"}}\n' "$token"
      text "$id" "done" false ;;
    # 80,000 bytes, as a server that takes screenshots sends them.
    *'"name":"picture"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"the screen"},{"type":"image","mimeType":"image/png","data":"%s"}]}}\n' "$id" "$(head -c 80000 /dev/zero | base64 | tr -d '\n')" ;;
    # Asks its client, and goes on with the answer.
    *'"name":"ask"'*) asker=$id
      printf '{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Which color?","requestedSchema":{"type":"object","properties":{"color":{"type":"string","enum":["red","green"]}},"required":["color"]}}}\n' ;;
    *'"id":"e1"'*'"accept"'*|*'"accept"'*'"id":"e1"'*)
      text "$asker" "$(printf '%s' "$line" | sed -n 's/.*"color":"\([a-z]*\)".*/\1/p') it is" false ;;
    *'"id":"e1"'*|*'"e1"'*) text "$asker" "no color then" false ;;
    # Would have a model say something.
    *'"name":"muse"'*) asker=$id
      printf '{"jsonrpc":"2.0","id":"m1","method":"sampling/createMessage","params":{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"sing"}}]}}\n' ;;
    *'"id":"m1"'*) case "$line" in
      *'"error"'*) text "$asker" "silence" false ;;
      *) text "$asker" "somebody sang" false ;;
      esac ;;
    # Wants to be called again with the answer.
    *'"name":"round"'*) case "$line" in
      *'"requestState":"s1"'*) text "$id" "$(printf '%s' "$line" | sed -n 's/.*"content":{"size":\([0-9]*\)}.*/\1/p') for $(printf '%s' "$line" | sed -n 's/.*"n":\([0-9]*\).*/\1/p')" false ;;
      *) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","requestState":"s1","inputRequests":{"size":{"method":"elicitation/create","params":{"message":"How large?","requestedSchema":{"type":"object","properties":{"size":{"type":"integer"}},"required":["size"]}}}}}}\n' "$id" ;;
      esac ;;
    # Makes a task of it, which asks whether to go on, and is done then.
    *'"name":"later"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"task",%s,"status":"working"}}\n' "$id" "$(task)" ;;
    *'"tasks/get"'*) case "$(cat "$TOOLS.task" 2>/dev/null)" in
      done) echo over >"$TOOLS.task"; printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s,"status":"completed","result":{"content":[{"type":"text","text":"did it"}]}}}\n' "$id" "$(task)" ;;
      over) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such task"}}\n' "$id" ;;
      gone) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s,"status":"cancelled"}}\n' "$id" "$(task)" ;;
      asks) printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s,"status":"input_required","inputRequests":{"go":{"method":"elicitation/create","params":{"message":"Go on?","requestedSchema":{"type":"object","properties":{"go":{"type":"boolean"}},"required":["go"]}}}}}}\n' "$id" "$(task)" ;;
      *) echo asks >"$TOOLS.task"; printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete",%s,"status":"working","statusMessage":"at it"}}\n' "$id" "$(task)" ;;
      esac ;;
    *'"tasks/update"'*) echo done >"$TOOLS.task"; printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}\n' "$id" ;;
    *'"tasks/cancel"'*) echo gone >"$TOOLS.task"; printf '{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete"}}\n' "$id" ;;
    *'"name":"hang"'*) echo hung >>"$TOOLS.log" ;;
    *'"name":"tell"'*) echo "my token is $TOKEN" >&2; text "$id" "told" false ;;
    *'"name":"grow"'*)
      echo grown >>"$TOOLS"
      printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
      text "$id" "grown" false ;;
    *'"notifications/cancelled"'*) echo cancelled >>"$TOOLS.log" ;;
  esac
done
"#;

/// Length of the image data that the tool `picture` sends: 80,000 bytes in base64.
pub(crate) const PICTURE_BASE64_LEN: usize = 106_668;

/// The script, in a folder of its own, with its tools.
pub(crate) struct McpUpstream {
    name: &'static str,
    pub(crate) script: String,
    tools: PathBuf,
}

// === impl McpUpstream ===

impl McpUpstream {
    /// A server called `name` with these tools; it is not started yet.
    pub(crate) fn new(rialto: &Rialto, name: &'static str, tools: &[&str]) -> Self {
        let folder = rialto.folder().join(name);
        fs::create_dir(&folder).unwrap();
        let (script, list) = (folder.join("server.sh"), folder.join("tools"));
        fs::write(&script, SCRIPT).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&list, tools.join("\n") + "\n").unwrap();
        Self { name, script: script.display().to_string(), tools: list }
    }

    /// Deploys it.
    #[track_caller]
    pub(crate) fn add(&self, rialto: &Rialto, more: &[&str]) -> serde_json::Value {
        let (tools, name) = (format!("TOOLS={}", self.tools.display()), format!("NAME={}", self.name));
        let args = ["tools", "add", self.name, "--json", "--env", &tools, "--env", &name];
        rialto.json(&[&args, more, &["--", self.script.as_str()]].concat())
    }

    /// Has other tools from now on, for whoever asks.
    pub(crate) fn offer(&self, tools: &[&str]) {
        fs::write(&self.tools, tools.join("\n") + "\n").unwrap();
    }

    /// It, as an entry of the configuration.
    pub(crate) fn entry(&self) -> String {
        format!(
            "[[mcp_servers]]\nname = \"{0}\"\ncommand = \"{1}\"\nenv = {{ TOOLS = \"{2}\", NAME = \"{0}\" }}\n",
            self.name,
            self.script,
            self.tools.display()
        )
    }

    /// Waits until it has noted this.
    #[track_caller]
    pub(crate) fn noted(&self, what: &str) {
        let log = self.tools.with_extension("log");
        until(what, || fs::read_to_string(&log).ok().filter(|log| log.lines().any(|line| line == what)));
    }

    /// Ends it as nobody can prevent.
    pub(crate) fn kill(&self) {
        let pid = fs::read_to_string(self.tools.with_extension("pid")).unwrap();
        assert!(std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    }

    /// Whether it runs.
    pub(crate) fn runs(&self) -> bool {
        let pid = fs::read_to_string(self.tools.with_extension("pid")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    }
}
