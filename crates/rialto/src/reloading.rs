//! `rialto.toml`, read again whenever it changes while the program runs.
//!
//! What is read must hold up as a whole: a file with a mistake changes nothing, and the log says where the mistake is. What can
//! be changed while calls are under way then counts from the next call on; of the rest the log names the sections, which
//! count after a restart.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use rialto_edge::{rate_limits::RateLimiter, stream_limits::StreamLimits};
use rialto_engine::{Engine, GuardrailSet, guardrails::Asker};
use rialto_flow::run::Runner;
use rialto_guard::scoped_rules::ScopedRuleError;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, DEFAULT_FILE},
    environment::Environment,
    flows,
    looking::{Looks, Reason, ReloadSignal, lasts},
    tools,
};

/// The sections that count without a restart. Of `agents` that is `local`, of `flows` the folder.
const LIVE: [&str; 5] = ["guardrails", "limits", "mcp_servers", "functions", "workflows"];

/// Reads the configuration again, and makes the program what it says.
#[derive(Clone)]
pub(crate) struct Reloading {
    engine: Engine,
    flows: Runner,
    requests: Arc<RateLimiter>,
    streams: StreamLimits,
    asker: Asker,
    environment: Environment,
    /// The configuration in force.
    config: Config,
    /// The files that it was made of.
    seen: Seen,
}

/// Files as they were when they were looked at.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    text: Option<String>,
    /// Definitions of workflows: when they were changed, and how long they are.
    definitions: Vec<(PathBuf, Option<SystemTime>, u64)>,
}

// === impl Seen ===

impl Seen {
    /// The file of this configuration, and the files that it names.
    fn of(config: &Config) -> Self {
        let file = config.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let about = |path: PathBuf| {
            let about = std::fs::metadata(&path).ok();
            let changed = about.as_ref().and_then(|about| about.modified().ok());
            (path, changed, about.map_or(0, |about| about.len()))
        };
        let named = flows::files(config).unwrap_or_default();
        Self {
            text: std::fs::read_to_string(file).ok(),
            definitions: named.into_iter().map(|(path, _)| about(path)).collect(),
        }
    }
}

// === impl Reloading ===

impl Reloading {
    /// Puts the guardrails of a configuration into force, and keeps what is needed to read it again.
    pub(crate) fn of(
        engine: &Engine,
        flows: &Runner,
        asker: Asker,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ScopedRuleError> {
        engine.guardrails().replace(GuardrailSet::new(&config.guardrails, Arc::clone(&asker))?);
        Ok(Self {
            engine: engine.clone(),
            flows: flows.clone(),
            requests: Arc::new(RateLimiter::new(config.limits.requests())),
            streams: StreamLimits::new(config.limits.concurrent_streams),
            asker,
            environment: environment.clone(),
            config: config.clone(),
            seen: Seen::of(config),
        })
    }

    /// Counts the requests of callers.
    pub(crate) fn requests(&self) -> Arc<RateLimiter> {
        Arc::clone(&self.requests)
    }

    /// Counts the streams of callers.
    pub(crate) fn streams(&self) -> StreamLimits {
        self.streams.clone()
    }

    /// Looks at the files until it is told to stop. With `is_whole`, what they do not name any more is removed.
    pub(crate) async fn watch(
        mut self: Box<Self>,
        is_whole: bool,
        stop: CancellationToken,
        signal: ReloadSignal,
    ) {
        let mut looks = Looks::until(stop, &signal);
        while let Some(reason) = looks.next().await {
            let seen = Seen::of(&self.config);
            let is_same = seen == self.seen && reason == Reason::Tick;
            if is_same || (seen.text.is_none() && self.seen.text.is_some()) {
                continue;
            }
            if !lasts(&seen, || Seen::of(&self.config)).await {
                continue;
            }
            self.seen = seen;
            if let Err(why) = self.reload(is_whole).await {
                tracing::error!("the configuration was not reloaded, the one before stays in force: {why}");
            }
        }
    }

    async fn reload(&mut self, is_whole: bool) -> Result<(), String> {
        let config = Config::load(self.config.file.as_deref(), &self.environment);
        let config = config.map_err(|error| error.to_string())?;
        let guarding = GuardrailSet::new(&config.guardrails, Arc::clone(&self.asker));
        let guarding = guarding.map_err(|error| error.to_string())?;
        flows::check(&config).map_err(|error| error.to_string())?;
        let restart = self.needs_restart(&config);
        self.deploy(&config, is_whole).await?;
        let flows = flows::configure(&config, &self.engine, &self.flows, is_whole).await;
        flows.map_err(|error| error.to_string())?;
        if differs(&self.config.guardrails, &config.guardrails) {
            self.engine.guardrails().replace(guarding);
        }
        self.engine.calls().set_limits(&config.limits.calls());
        self.requests.set_config(config.limits.requests());
        self.streams.set_max(config.limits.concurrent_streams);
        tracing::info!("the configuration was read again, and counts from now on");
        if !restart.is_empty() {
            tracing::warn!(
                "these changes of the configuration count after a restart: {}",
                restart.join(", ")
            );
        }
        self.seen.definitions = Seen::of(&config).definitions;
        self.config = config;
        Ok(())
    }

    /// Deploys what is configured, and has those asked what they can do whom nobody has asked yet.
    async fn deploy(&self, config: &Config, is_whole: bool) -> Result<(), String> {
        let wanted = config.deployments().map_err(|(key, reason)| format!("{key}: {reason}"))?;
        let registry = Arc::clone(self.engine.registry());
        let unasked =
            registry.deployments().configure(&wanted, is_whole).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            futures::future::join_all(unasked.iter().map(|row| tools::ask(&registry, row))).await;
        });
        Ok(())
    }

    /// The sections that have changed, and do not count before a restart.
    fn needs_restart(&self, config: &Config) -> Vec<String> {
        let (before, after) = (still(&self.config), still(config));
        let sections = after.as_object().into_iter().flatten();
        let changed = sections.filter(|(name, section)| before.get(name.as_str()) != Some(*section));
        changed.map(|(name, _)| format!("[{name}]")).collect()
    }
}

/// What a configuration says about everything that cannot be changed while the program runs.
fn still(config: &Config) -> Value {
    let mut config = serde_json::json!(config);
    if let Some(sections) = config.as_object_mut() {
        sections.retain(|name, _| !LIVE.contains(&name.as_str()));
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
        still(&toml::from_str(text).unwrap())
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
