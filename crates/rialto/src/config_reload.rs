//! Reload of `rialto.toml` when it changes.
//!
//! A file is validated as a whole: one with an error changes nothing, and the log names the error. Sections that can change at run
//! time apply from the next call on; for others the log says that they need a restart.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rialto_engine::{Engine, GuardrailSet, guardrails::Asker};
use rialto_guardrails::scoped_rules::ScopedRuleError;
use rialto_http_server::{rate_limits::RateLimiter, stream_limits::StreamLimits};
use rialto_workflow::run::WorkflowRunner;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, DEFAULT_FILE},
    configured_workflows, deployed_backends,
    environment::Environment,
    file_poll::{FilePoll, PollReason, ReloadSignal, is_stable},
};

/// The sections that count without a restart. Of `agents` that is `local`, of `flows` the folder.
const LIVE_SECTIONS: [&str; 5] = ["guardrails", "limits", "mcp_servers", "functions", "workflows"];

/// Reloads the configuration and applies it to the program.
#[derive(Clone)]
pub(crate) struct ConfigReload {
    engine: Engine,
    flows: WorkflowRunner,
    requests: Arc<RateLimiter>,
    streams: StreamLimits,
    asker: Asker,
    environment: Environment,
    /// Active configuration.
    config: Config,
    /// The files that it was made of.
    seen: FileSnapshot,
}

/// Files as of the last poll.
#[derive(Clone, PartialEq, Eq)]
struct FileSnapshot {
    text: Option<String>,
    /// Workflow files: time of change and size.
    definitions: Vec<(PathBuf, Option<SystemTime>, u64)>,
}

// === impl FileSnapshot ===

impl FileSnapshot {
    /// The file of this configuration, and the files that it names.
    fn from_config(config: &Config) -> Self {
        let file = config.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let about = |path: PathBuf| {
            let about = std::fs::metadata(&path).ok();
            let changed = about.as_ref().and_then(|about| about.modified().ok());
            (path, changed, about.map_or(0, |about| about.len()))
        };
        let named = configured_workflows::definition_files(config).unwrap_or_default();
        Self {
            text: std::fs::read_to_string(file).ok(),
            definitions: named.into_iter().map(|(path, _)| about(path)).collect(),
        }
    }
}

// === impl ConfigReload ===

impl ConfigReload {
    /// Activates the guardrails of a configuration, and retains the state for reloads.
    pub(crate) fn from_config(
        engine: &Engine,
        flows: &WorkflowRunner,
        asker: Asker,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ScopedRuleError> {
        engine.guardrails().replace(GuardrailSet::new(&config.guardrails, Arc::clone(&asker))?);
        Ok(Self {
            engine: engine.clone(),
            flows: flows.clone(),
            requests: Arc::new(RateLimiter::new(config.limits.request_limits())),
            streams: StreamLimits::new(config.limits.concurrent_streams),
            asker,
            environment: environment.clone(),
            config: config.clone(),
            seen: FileSnapshot::from_config(config),
        })
    }

    /// Counts the requests of callers.
    pub(crate) fn request_limits(&self) -> Arc<RateLimiter> {
        Arc::clone(&self.requests)
    }

    /// Counts the streams of callers.
    pub(crate) fn stream_limits(&self) -> StreamLimits {
        self.streams.clone()
    }

    /// Polls the files until `stop` is cancelled. With `is_whole`, rows that they no longer name are removed.
    pub(crate) async fn watch(
        mut self: Box<Self>,
        is_whole: bool,
        stop: CancellationToken,
        signal: ReloadSignal,
    ) {
        let mut looks = FilePoll::new(stop, &signal);
        while let Some(reason) = looks.next().await {
            let seen = FileSnapshot::from_config(&self.config);
            let is_same = seen == self.seen && reason == PollReason::Tick;
            if is_same || (seen.text.is_none() && self.seen.text.is_some()) {
                continue;
            }
            if !is_stable(&seen, || FileSnapshot::from_config(&self.config)).await {
                continue;
            }
            self.seen = seen;
            if let Err(why) = self.reload(is_whole).await {
                tracing::error!("the configuration was not reloaded, the previous one stays active: {why}");
            }
        }
    }

    async fn reload(&mut self, is_whole: bool) -> Result<(), String> {
        let config = Config::load(self.config.file.as_deref(), &self.environment);
        let config = config.map_err(|error| error.to_string())?;
        let guarding = GuardrailSet::new(&config.guardrails, Arc::clone(&self.asker));
        let guarding = guarding.map_err(|error| error.to_string())?;
        configured_workflows::check(&config).map_err(|error| error.to_string())?;
        let restart = self.needs_restart(&config);
        self.deploy(&config, is_whole).await?;
        let flows = configured_workflows::configure(&config, &self.engine, &self.flows, is_whole).await;
        flows.map_err(|error| error.to_string())?;
        if differs(&self.config.guardrails, &config.guardrails) {
            self.engine.guardrails().replace(guarding);
        }
        self.engine.calls().set_limits(&config.limits.call_limits());
        self.requests.set_config(config.limits.request_limits());
        self.streams.set_max(config.limits.concurrent_streams);
        tracing::info!("the configuration was read again, and counts from now on");
        if !restart.is_empty() {
            tracing::warn!(
                "these changes of the configuration count after a restart: {}",
                restart.join(", ")
            );
        }
        self.seen.definitions = FileSnapshot::from_config(&config).definitions;
        self.config = config;
        Ok(())
    }

    /// Deploys the configured servers, and refreshes those without a tool list.
    async fn deploy(&self, config: &Config, is_whole: bool) -> Result<(), String> {
        let wanted = config.deployments().map_err(|(key, reason)| format!("{key}: {reason}"))?;
        let registry = Arc::clone(self.engine.registry());
        let unasked =
            registry.deployments().configure(&wanted, is_whole).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            futures::future::join_all(unasked.iter().map(|row| deployed_backends::refresh(&registry, row)))
                .await;
        });
        Ok(())
    }

    /// The sections that have changed, and do not count before a restart.
    fn needs_restart(&self, config: &Config) -> Vec<String> {
        let (before, after) = (restart_sections(&self.config), restart_sections(config));
        let sections = after.as_object().into_iter().flatten();
        let changed = sections.filter(|(name, section)| before.get(name.as_str()) != Some(*section));
        changed.map(|(name, _)| format!("[{name}]")).collect()
    }
}

/// Sections of a configuration that need a restart.
fn restart_sections(config: &Config) -> Value {
    let mut config = serde_json::json!(config);
    if let Some(sections) = config.as_object_mut() {
        sections.retain(|name, _| !LIVE_SECTIONS.contains(&name.as_str()));
        for (section, key) in [("agents", "local"), ("flows", "folder")] {
            if let Some(section) = sections.get_mut(section).and_then(Value::as_object_mut) {
                section.remove(key);
            }
        }
    }
    config
}

fn differs<T: serde::Serialize>(one: &T, other: &T) -> bool {
    serde_json::json!(one) != serde_json::json!(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Value {
        restart_sections(&toml::from_str(text).unwrap())
    }

    #[test]
    fn what_counts_at_once_needs_no_restart() {
        let live = "[limits]\nconcurrent_calls = 1\n[[functions]]\nname = \"f\"\ncommand = [\"true\"]\n\
                    [flows]\nfolder = \"flows\"\n[guardrails]\nenabled = false\n";
        assert_eq!(config(live), config(""));
        assert_ne!(config("[server]\naddr = \"127.0.0.1:1\""), config(""));
        assert_ne!(config("[flows]\ntools = false"), config("[flows]\ntools = true"));
    }
}
