//! Moments that come again: a cron pattern in a time zone.
//!
//! Time zones are compiled in: a container without time zone data runs the workflow at the same time.

use std::{str::FromStr, sync::Arc};

use croner::Cron;
use jiff::{Timestamp, tz::TimeZone};

/// A cron pattern and the time zone it counts in.
#[derive(Clone, Debug)]
pub struct CronSchedule {
    pattern: String,
    /// Shared, because it is a table of every field.
    cron: Arc<Cron>,
    zone: TimeZone,
}

/// Why a schedule is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The pattern means nothing.
    #[error("\"{pattern}\" is no cron pattern: {why}; write five fields, as in \"0 9 * * MON-FRI\"")]
    Pattern {
        /// Pattern as written.
        pattern: String,
        /// Reason.
        why: String,
    },
    /// No moment ever fits the pattern.
    #[error("\"{0}\" never matches")]
    Never(String),
    /// Unknown time zone.
    #[error("\"{0}\" is no time zone; write one as in \"Europe/Berlin\" or \"UTC\"")]
    Zone(String),
}

// === impl CronSchedule ===

impl CronSchedule {
    /// Reads a pattern of five fields, or six with seconds in front, and the name of a time zone.
    pub fn parse(pattern: &str, zone: &str) -> Result<Self, ScheduleError> {
        let tz = TimeZone::get(zone).map_err(|_| ScheduleError::Zone(zone.to_owned()))?;
        let cron = Cron::from_str(pattern.trim()).map_err(|error| {
            let why = error.to_string();
            ScheduleError::Pattern { pattern: pattern.to_owned(), why: why.trim_end_matches('.').to_owned() }
        })?;
        let schedule = Self { pattern: pattern.trim().to_owned(), cron: Arc::new(cron), zone: tz };
        // Counted from a fixed time, so that a file is always parsed alike.
        match schedule.next_after(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never(pattern.to_owned())),
        }
    }

    /// The first moment that fits and is later than `moment`.
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let moment = moment.to_zoned(self.zone.clone());
        self.cron.find_next_occurrence(&moment, false).ok().map(|next| next.timestamp())
    }

    /// The pattern, as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The name of the time zone.
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }
}

impl PartialEq for CronSchedule {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.zone == other.zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(pattern: &str, zone: &str, after: &str) -> String {
        let schedule = CronSchedule::parse(pattern, zone).unwrap();
        schedule.next_after(after.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn the_next_moment_is_told_in_the_time_zone_it_counts_in() {
        let friday = "2026-11-13T12:00:00Z";
        assert_eq!(next("0 9 * * MON-FRI", "UTC", friday), "2026-11-16T09:00:00Z");
        assert_eq!(next("0 9 * * MON-FRI", "Europe/Berlin", friday), "2026-11-16T08:00:00Z");
        assert_eq!(next("*/15 * * * *", "UTC", "2026-01-01T00:15:00Z"), "2026-01-01T00:30:00Z");
    }

    #[test]
    fn what_is_no_schedule_says_why() {
        let wrong = |pattern, zone| CronSchedule::parse(pattern, zone).unwrap_err().to_string();
        assert!(wrong("61 * * * *", "UTC").starts_with("\"61 * * * *\" is no cron pattern: "));
        assert!(wrong("soon", "UTC").contains("write five fields"));
        assert_eq!(wrong("0 0 30 2 *", "UTC"), "\"0 0 30 2 *\" never matches");
        assert!(wrong("0 9 * * *", "Europe/Berln").contains("is no time zone"));
    }
}
