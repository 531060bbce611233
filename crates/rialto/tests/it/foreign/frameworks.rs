//! Agents of frameworks that others wrote, with Rialto as their MCP server and a scripted model: the part of `interop/frameworks` that
//! `interop/setup` installs.

use std::process::Command;

use crate::harness::root;

/// Five frameworks on two transports, with nine cases each.
const CELLS: usize = 5 * 2 * 9;

#[test]
fn agents_of_five_frameworks_complete_their_runs_with_default_settings() {
    let mut command = Command::new(root().join("interop/frameworks/run"));
    let output = command.arg("--ci").env("RIALTO_BIN", env!("CARGO_BIN_EXE_rialto")).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let cells = out.lines().filter(|line| line.starts_with("frameworks: ")).count();
    assert_eq!(cells, CELLS, "{out}");
}
