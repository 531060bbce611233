//! Configuration of the store.

use std::{fmt, time::Duration};

use jiff::Timestamp;
use rialto_model::store::SweepLimits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// The death of this process at any moment. After a power cut the last moments may be missing; nothing is torn.
    #[default]
    Normal,
    /// A power cut too, at the price of a disk flush per commit.
    Full,
}

/// Where a PostgreSQL database is, with the password that opens it. It is shown without the password everywhere.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StoreUrl(String);

/// How the store works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// A PostgreSQL database to keep everything in: `postgres://user:password@host/database`. Without it everything is kept in
    /// one SQLite file in the data folder. `RIALTO_STORE_URL` says the same. The certificate of a server that is not on this
    /// machine is always checked; `?sslmode=disable` goes without encryption, `?sslrootcert=FILE` trusts the authorities in a
    /// PEM file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<StoreUrl>,
    /// Address of the PostgreSQL server itself, where `url` leads to a pooler such as PgBouncer: for the connection that is told of changes by
    /// other nodes and the one that says that this node is alive. Without it they are polled. `RIALTO_STORE_LISTEN_URL` says the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_url: Option<StoreUrl>,
    /// Whether `url` leads to a pooler that gives connections away after each transaction: then statements are sent without names. Without it
    /// that is found out at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooler: Option<bool>,
    /// At most so many connections to PostgreSQL, besides four: one listens, two write tasks and audit records, one says that this node is alive.
    pub connections: u16,
    /// What an acknowledged write survives. With PostgreSQL, `normal` leaves that to the server (`synchronous_commit`), and
    /// `full` asks it to wait for its disk.
    pub durability: Durability,
    /// Collect the events of short calls in a memory-mapped file beside the SQLite database, and write each task to the database once (write
    /// buffer). Without it, each batch of events is a transaction. PostgreSQL and `durability = "full"` never use it.
    pub write_buffer: bool,
    /// How long tasks are kept after their end, in hours; 0 keeps them for ever.
    pub keep_tasks_hours: u32,
    /// How long audit records are kept, in days; 0 keeps them for ever.
    pub keep_audit_days: u32,
    /// Size that the store may have, in bytes; beyond it the tasks that ended first are removed, however young. 0 is no limit. Audit records are not
    /// removed for it.
    pub max_bytes: u64,
    /// Whether a damaged database is opened all the same. Said on the command line, not in the configuration.
    #[serde(skip)]
    pub accept_damage: bool,
}

// === impl Config ===

impl Config {
    /// Minimum time for which tasks are kept, in milliseconds; none is without limit.
    pub fn keeps_tasks_ms(&self) -> Option<u64> {
        (self.keep_tasks_hours > 0).then(|| u64::from(self.keep_tasks_hours) * 60 * 60 * 1_000)
    }

    /// Limits of what is kept at this moment.
    pub fn old(&self, now: Timestamp) -> SweepLimits {
        let before = |hours: u64| {
            (hours > 0).then(|| now.checked_sub(Duration::from_secs(hours * 3600)).unwrap_or(Timestamp::MIN))
        };
        SweepLimits {
            tasks_before: before(self.keep_tasks_hours.into()),
            audit_before: before(u64::from(self.keep_audit_days) * 24),
            max_bytes: (self.max_bytes > 0).then_some(self.max_bytes),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            url: None,
            listen_url: None,
            pooler: None,
            connections: 10,
            durability: Durability::default(),
            write_buffer: true,
            keep_tasks_hours: 24,
            keep_audit_days: 365,
            max_bytes: 0,
            accept_damage: false,
        }
    }
}

// === impl StoreUrl ===

impl StoreUrl {
    /// The whole of it. Not to be shown.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// The address without a password, to be used in commands.
    pub fn without_password(&self) -> String {
        self.to_string().replacen(":***@", "@", 1)
    }

    fn shown(&self) -> Option<String> {
        let (scheme, rest) = self.0.split_once("://")?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if path.contains('@') || authority.matches('@').count() > 1 {
            return None;
        }
        let (user, hosts) =
            authority.split_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let is_port = |port: &str| port.ends_with(']') || port.bytes().all(|digit| digit.is_ascii_digit());
        if !hosts.split(',').all(|host| host.rsplit_once(':').is_none_or(|(_, port)| is_port(port))) {
            return None;
        }
        let user = match user.map(|user| user.split_once(':').map_or((user, ""), |(user, _)| (user, ":***")))
        {
            Some((user, secret)) => format!("{user}{secret}@"),
            None => String::new(),
        };
        let database = path.split(['?', '#']).next().unwrap_or_default();
        Some(format!("{scheme}://{user}{hosts}{database}"))
    }
}

impl From<String> for StoreUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

/// Address without its password; nothing of an address so malformed that any part could be a password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown().unwrap_or_else(|| "postgres://…".to_owned()))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for StoreUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        for (url, shown) in [
            ("postgres://ann:hunter2@db.example/rialto", "postgres://ann:***@db.example/rialto"),
            ("postgresql://ann@db:5433/r?password=hunter2", "postgresql://ann@db:5433/r"),
            ("postgres://ann:hunter2@[::1]:5432,b/r", "postgres://ann:***@[::1]:5432,b/r"),
            ("postgres://db/rialto", "postgres://db/rialto"),
            ("postgres://ann:hun/hunter2@db.example/rialto", "postgres://…"),
            ("postgres://ann:hun@hunter2@db.example/rialto", "postgres://…"),
            ("postgres://db/rialto?password=hun@hunter2", "postgres://…"),
            ("postgres://ann:hunter2", "postgres://…"),
            ("hunter2", "postgres://…"),
        ] {
            let url = StoreUrl::from(url.to_owned());
            assert_eq!((url.to_string().as_str(), format!("{url:?}")), (shown, format!("\"{shown}\"")));
            assert!(!serde_json::to_string(&url).unwrap().contains("hunter2"), "{url}");
        }
    }
}
