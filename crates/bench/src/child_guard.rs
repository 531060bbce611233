//! Runs another program and ends it when our parent is gone.
//!
//! A daemon outlives a killed parent. This process ends it.

use std::{
    io,
    process::{ExitCode, Stdio},
};

use tokio::process::Command;

use crate::{
    child::{tell_parent, wait_for_parent_exit},
    error::{BenchError, context},
};

/// Program to run.
#[derive(clap::Args)]
pub(crate) struct ChildGuardArgs {
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<std::ffi::OsString>,
}

/// Reports the program's process id to the parent, then waits for either to end.
pub(crate) async fn run(args: &ChildGuardArgs) -> Result<ExitCode, BenchError> {
    let [program, rest @ ..] = args.command.as_slice() else { return Err(BenchError::new("nothing to run")) };
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::from(io::stderr()))
        .kill_on_drop(true)
        .spawn()
        .map_err(context(format!("{} could not be started", program.to_string_lossy())))?;
    tell_parent(&child.id().unwrap_or_default())?;
    tokio::select! {
        ended = child.wait() => {
            let status = ended.map_err(context("the program was lost"))?;
            Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        () = wait_for_parent_exit() => {
            child.kill().await.map_err(context("the program could not be ended"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
