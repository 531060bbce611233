//! A small coding agent as a shell script: it speaks the Agent Client Protocol on stdin and stdout, and does what the words of a
//! prompt say.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use super::rialto::Rialto;

/// The script. What it does is noted in the folder `$NOTES`.
const SCRIPT: &str = r#"#!/bin/sh
echo $$ >>"$NOTES/starts"
echo "$RIALTO_HOPS" >>"$NOTES/hops"
send() { printf '%s\n' "$1"; }
update() { send "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"$1\",\"update\":$2}}"; }
say() { update "$1" "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$2\"}}"; }
answer() { send "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
stop() { answer "$1" "{\"stopReason\":\"$2\"}"; }
number=0
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  session=$(printf '%s' "$line" | sed -n 's/.*"sessionId":"\([^"]*\)".*/\1/p')
  case "$line" in
    *'"initialize"'*) printf '%s' "$line" >"$NOTES/hello"
      answer "$id" '{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"embeddedContext":true}}}' ;;
    *'"session/new"'*) number=$((number + 1)); answer "$id" "{\"sessionId\":\"s-$$-$number\"}" ;;
    *'"session/load"'*) echo "$session" >>"$NOTES/loads"; say "$session" "old words"; answer "$id" '{}' ;;
    *'"session/cancel"'*) echo "$session" >>"$NOTES/cancels"
      [ -n "$hanging" ] && stop "$hanging" cancelled; hanging="" ;;
    *'"id":"p1"'*) case "$line" in
        *'"optionId":"once"'*) say "$asker" "removed" ;;
        *'"optionId":"no"'*) say "$asker" "kept" ;;
        *) say "$asker" "unsure" ;;
      esac
      stop "$asking" end_turn ;;
    *'"session/prompt"'*)
      echo x >>"$NOTES/turns-$session"
      case "$line" in
        *'please count'*) say "$session" "turn $(wc -l <"$NOTES/turns-$session" | tr -d ' ') in "; say "$session" "$session"; stop "$id" end_turn ;;
        *'please think'*)
          update "$session" '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm, "}}'
          update "$session" '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"well"}}'
          update "$session" '{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read a.txt","kind":"read","status":"in_progress","rawInput":{"path":"a.txt"}}'
          update "$session" '{"sessionUpdate":"plan","entries":[{"content":"read","priority":"high","status":"completed"}]}'
          say "$session" "thought"; stop "$id" end_turn ;;
        *'please remove'*) asker=$session; asking=$id
          send "{\"jsonrpc\":\"2.0\",\"id\":\"p1\",\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"$session\",\"toolCall\":{\"toolCallId\":\"t1\",\"title\":\"rm -r build\",\"rawInput\":{\"command\":\"rm -r build\",\"token\":\"hunter2\"}},\"options\":[{\"optionId\":\"always\",\"name\":\"Always\",\"kind\":\"allow_always\"},{\"optionId\":\"once\",\"name\":\"Once\",\"kind\":\"allow_once\"},{\"optionId\":\"no\",\"name\":\"No\",\"kind\":\"reject_once\"}]}}" ;;
        *'please hang'*) hanging=$id; say "$session" "at it" ;;
        *'please die'*) echo "out of ink" >&2; exit 3 ;;
        *'please refuse'*) stop "$id" refusal ;;
        *'please look'*) printf '%s' "$line" >"$NOTES/prompt"; say "$session" "seen"; stop "$id" end_turn ;;
        *) say "$session" "what?"; stop "$id" end_turn ;;
      esac ;;
    *) [ -n "$id" ] && send "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}" ;;
  esac
done
"#;

/// The script and its notes.
pub(crate) struct CodingAgent {
    notes: PathBuf,
}

// === impl CodingAgent ===

impl CodingAgent {
    /// Writes the script and a configuration with it, and with these lines more.
    pub(crate) fn configure(rialto: &Rialto, more: &str) -> Self {
        let notes = rialto.folder().join("notes");
        fs::create_dir_all(&notes).unwrap();
        let script = rialto.folder().join("coder.sh");
        fs::write(&script, SCRIPT).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let (script, folder) = (script.display(), notes.display());
        let config = format!(
            "[[agents.local]]\nname = \"coder\"\ndescription = \"Codes\"\ncommand = \"{script}\"\n\
             env = {{ NOTES = \"{folder}\" }}\ncwd = \"{folder}\"\n{more}\n"
        );
        fs::write(rialto.folder().join("rialto.toml"), config).unwrap();
        Self { notes }
    }

    /// What it noted under a name.
    pub(crate) fn noted(&self, name: &str) -> String {
        fs::read_to_string(self.notes.join(name)).unwrap_or_default()
    }
}
