//! A Rialto that is governed as a platform team would: callers with tokens, many policies, and metrics that are read.

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use tempfile::TempDir;
use tokio::{task::AbortHandle, time::interval};

use crate::{
    error::{BenchError, context},
    program::{self, RunningServer},
};

/// Number of policies beside those of a fresh install.
const POLICIES: usize = 100;

/// Interval at which metrics are read.
const METRICS_INTERVAL: Duration = Duration::from_secs(1);

/// Governed server; it ends when it is dropped.
pub(crate) struct GovernedServer {
    pub(crate) served: RunningServer,
    /// Token of its callers.
    pub(crate) token: String,
    reader: AbortHandle,
    _data: TempDir,
}

// === impl GovernedServer ===

impl GovernedServer {
    pub(crate) async fn serve(program: &program::ProgramArgs, agent: &str) -> Result<Self, BenchError> {
        let program = program.locate()?;
        let data = tempfile::tempdir().map_err(context("no folder for the data"))?;
        program.add_agent(&format!("http://{agent}"), data.path()).await?;
        let token = program.create_token(data.path()).await?;
        write_policies(data.path())?;
        program.run(&["policy", "check"], data.path()).await?;
        let served = program.serve_with(data.path(), &[]).await?;
        let address = served.address;
        // The first read must succeed; later ones are load.
        program::get_page(address, "/metrics").await?;
        let reader = tokio::spawn(async move {
            let mut tick = interval(METRICS_INTERVAL);
            loop {
                tick.tick().await;
                let _ = program::get_page(address, "/metrics").await;
            }
        });
        Ok(Self { served, token, reader: reader.abort_handle(), _data: data })
    }
}

impl Drop for GovernedServer {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Writes policies of all common shapes: for one caller, one agent, or a tag. None of them decides the measured calls, but all are
/// active.
fn write_policies(data: &Path) -> Result<(), BenchError> {
    let mut text = String::new();
    for n in 0..POLICIES {
        let policy = match n % 4 {
            0 => {
                format!("permit (principal == User::\"user{n}\", action == Action::\"a2a_invoke\", resource)")
            }
            1 => format!(
                "forbid (principal, action == Action::\"a2a_invoke\", resource in A2AAgent::\"agt_{n}\")"
            ),
            2 => format!(
                "permit (principal == User::\"user{n}\", action == Action::\"a2a_invoke\", resource in A2AAgent::\"agt_{n}\")"
            ),
            _ => format!(
                "permit (principal, action == Action::\"a2a_invoke\", resource is Skill) when {{ resource.tags.contains(\"tag{n}\") }}"
            ),
        };
        let _ = writeln!(text, "@id(\"bench{n}\")\n{policy};");
    }
    fs::write(data.join("policies/bench.cedar"), text).map_err(context("the policies could not be written"))
}
