//! A Rialto that is governed as a platform team would: callers with tokens, many policies, and metrics that are read.

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use tempfile::TempDir;
use tokio::{task::AbortHandle, time::interval};

use crate::{
    program::{self, Served},
    trouble::{Trouble, during},
};

/// How many policies there are besides the ones of a fresh install.
const POLICIES: usize = 100;

/// How often its metrics are read.
const READING: Duration = Duration::from_secs(1);

/// It runs until it is dropped.
pub(crate) struct Governed {
    pub(crate) served: Served,
    /// What its callers show.
    pub(crate) token: String,
    reader: AbortHandle,
    _data: TempDir,
}

// === impl Governed ===

impl Governed {
    pub(crate) async fn serve(program: &program::Args, agent: &str) -> Result<Self, Trouble> {
        let program = program.find()?;
        let data = tempfile::tempdir().map_err(during("no folder for the data"))?;
        program.add_agent(&format!("http://{agent}"), data.path()).await?;
        let token = program.make_token(data.path()).await?;
        write_policies(data.path())?;
        program.run(&["policy", "check"], data.path()).await?;
        let served = program.serve_with(data.path(), &[]).await?;
        let address = served.address;
        // The first time it must work; later ones are only to keep it busy.
        program::get(address, "/metrics").await?;
        let reader = tokio::spawn(async move {
            let mut tick = interval(READING);
            loop {
                tick.tick().await;
                let _ = program::get(address, "/metrics").await;
            }
        });
        Ok(Self { served, token, reader: reader.abort_handle(), _data: data })
    }
}

impl Drop for Governed {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Policies of every shape that people write: for one caller, for one agent, for whatever has a tag. None of them decides
/// about the calls that are measured, but all are in force.
fn write_policies(data: &Path) -> Result<(), Trouble> {
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
    fs::write(data.join("policies/bench.cedar"), text).map_err(during("the policies could not be written"))
}
