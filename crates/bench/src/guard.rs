//! Runs another program and ends it when our parent is gone.
//!
//! A daemon does not mind that its parent was killed. This process stands between: it does mind.

use std::{
    io,
    process::{ExitCode, Stdio},
};

use tokio::process::Command;

use crate::{
    child::{parent_gone, tell_parent},
    trouble::{Trouble, during},
};

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<std::ffi::OsString>,
}

/// Tells the parent the program's process id, then waits for either to end.
pub(crate) async fn run(args: &Args) -> Result<ExitCode, Trouble> {
    let [program, rest @ ..] = args.command.as_slice() else { return Err(Trouble::new("nothing to run")) };
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::from(io::stderr()))
        .kill_on_drop(true)
        .spawn()
        .map_err(during(format!("{} could not be started", program.to_string_lossy())))?;
    tell_parent(&child.id().unwrap_or_default())?;
    tokio::select! {
        ended = child.wait() => {
            let status = ended.map_err(during("the program was lost"))?;
            Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        () = parent_gone() => {
            child.kill().await.map_err(during("the program could not be ended"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
