//! A program as a function: arguments on stdin, result on stdout.

use rialto_edge::process::{Child, Launcher};
use rialto_model::{
    backing::{FunctionBacking, ProcessCommand},
    call::Call,
    failure::{Failure, FailureKind},
    json::Json,
    message::Part,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::result::{LARGEST, part_of};

/// So many lines of what a program said on stderr are told to the caller when it fails.
const LAST_LINES: usize = 5;

/// Runs a program. It ends when this is no longer waited for.
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
    let say = async {
        if let Some(mut stdin) = stdin {
            // A program that does not read its arguments does not need them.
            let _ = stdin.write_all(args.get().as_bytes()).await;
            let _ = stdin.shutdown().await;
        }
    };
    let hear = async {
        let mut output = Vec::new();
        if let Some(stdout) = stdout {
            let most = u64::try_from(LARGEST).unwrap_or(u64::MAX);
            stdout.take(most + 1).read_to_end(&mut output).await?;
        }
        Ok::<_, std::io::Error>(output)
    };
    // Whoever reads until too much has come no longer waits for the rest of the arguments to be taken.
    let output = tokio::select! {
        biased;
        output = hear => output,
        output = async { say.await; std::future::pending().await } => output,
    };
    let output = output.map_err(|error| failed(format!("{}: {error}", function.name)))?;
    if output.len() > LARGEST {
        let message = format!("the result of {} is larger than the limit of {LARGEST} bytes", function.name);
        return Err(Failure::new(FailureKind::PeerGarbled, message));
    }
    ended(&mut child, function).await?;
    Ok(part_of(&output, None))
}

/// Waits for the program's end, which must be a good one.
async fn ended(child: &mut Child, function: &FunctionBacking) -> Result<(), Failure> {
    let status = child.wait().await;
    let status =
        status.map_err(|error| Failure::new(FailureKind::Internal, format!("{}: {error}", function.name)))?;
    if status.success() {
        return Ok(());
    }
    let last = child.said().last(LAST_LINES);
    let words = if last.is_empty() { String::new() } else { format!(": {last}") };
    let message = format!("{} failed ({status}){words}", function.name);
    let data = json!({ "exitCode": status.code(), "stderr": last });
    Err(Failure::new(FailureKind::PeerFailed, message).with_data(Json::encode(&data)))
}
