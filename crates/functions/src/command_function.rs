//! Command functions: arguments on stdin, result on stdout.

use rialto_model::{
    backing::{FunctionBacking, ProcessCommand},
    call::Call,
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};
use rialto_process::{ChildProcess, Launcher};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::result::{MAX_RESULT_BYTES, part_from_bytes};

/// Number of the last lines of stderr that a failure contains.
const MAX_STDERR_LINES: usize = 5;

/// Runs a command. It is killed when this future is dropped.
pub(crate) async fn call(
    launcher: &Launcher,
    command: &ProcessCommand,
    function: &FunctionBacking,
    call: &Call,
) -> Result<Part, Failure> {
    let failed = |message: String| Failure::new(FailureKind::PeerUnreachable, message);
    let mut child = launcher.for_caller(&call.caller).start(command, &function.name).await.map_err(failed)?;
    let (stdin, stdout) = (child.stdin(), child.stdout());
    let args = call.args();
    let write_args = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its arguments does not need them.
            let _ = stdin.write_all(args.get().as_bytes()).await;
            let _ = stdin.shutdown().await;
        }
    };
    let read_output = async {
        let mut output = Vec::new();
        if let Some(stdout) = stdout {
            let limit = u64::try_from(MAX_RESULT_BYTES).unwrap_or(u64::MAX);
            stdout.take(limit + 1).read_to_end(&mut output).await?;
        }
        Ok::<_, std::io::Error>(output)
    };
    // The output is polled first: once too much has arrived, the rest of the arguments is not written.
    let output = tokio::select! {
        biased;
        output = read_output => output,
        output = async { write_args.await; std::future::pending().await } => output,
    };
    let output = output.map_err(|error| failed(format!("{}: {error}", function.name)))?;
    if output.len() > MAX_RESULT_BYTES {
        let message =
            format!("the result of {} is larger than the limit of {MAX_RESULT_BYTES} bytes", function.name);
        return Err(Failure::new(FailureKind::PeerGarbled, message));
    }
    wait_for_success(&mut child, function).await?;
    Ok(part_from_bytes(&output, None))
}

/// Waits for the end of the program, which must be a success.
async fn wait_for_success(child: &mut ChildProcess, function: &FunctionBacking) -> Result<(), Failure> {
    let status = child.wait().await;
    let status =
        status.map_err(|error| Failure::new(FailureKind::Internal, format!("{}: {error}", function.name)))?;
    if status.success() {
        return Ok(());
    }
    let last = child.stderr_tail().last(MAX_STDERR_LINES);
    let detail = if last.is_empty() { String::new() } else { format!(": {last}") };
    let message = format!("{} failed ({status}){detail}", function.name);
    let data = json!({ "exitCode": status.code(), "stderr": last });
    Err(Failure::new(FailureKind::PeerFailed, message).with_data(Json::encode(&data)))
}
