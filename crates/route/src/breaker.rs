//! Leaves an agent alone for a while that could not be reached several times in a row.
//!
//! Closed, calls go through. After so many calls in a row that did not reach the agent it opens, and nothing is given to the
//! agent until a pause is over. Then it is half open: one call goes through to see. If that one reaches the agent, the breaker
//! closes; if not, it opens again for twice as long.

use rialto_model::clock::Timestamp;

/// How patient a breaker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// So many calls in a row open it; zero never does.
    pub failures: u32,
    /// For so many seconds at first.
    pub pause_secs: u32,
    /// For so many seconds at most.
    pub longest_secs: u32,
}

/// The breaker of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Calls go through; so many in a row have not reached the agent.
    Closed {
        /// How many.
        failures: u32,
    },
    /// Nothing goes through.
    Open {
        /// Until then.
        until: Timestamp,
        /// For how many seconds it was opened.
        pause_secs: u32,
    },
    /// One call went through, and its end is waited for.
    HalfOpen {
        /// If nothing is heard by then, another one may go.
        until: Timestamp,
        /// For how many seconds it was open before.
        pause_secs: u32,
    },
}

/// What a breaker hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A call goes to the agent.
    Sent,
    /// A call has reached the agent, whatever came of it.
    Reached,
    /// A call has not reached it.
    Missed,
    /// A call that was to go was not made, or says nothing.
    Nothing,
}

// === impl Patience ===

impl Default for Patience {
    fn default() -> Self {
        Self { failures: 3, pause_secs: 1, longest_secs: 600 }
    }
}

// === impl Breaker ===

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

impl Breaker {
    /// Until when nothing is given to the agent, if that is so.
    pub fn closed_until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { until, .. } | Self::HalfOpen { until, .. } => (now < until).then_some(until),
        }
    }

    /// The breaker after something was heard.
    #[must_use]
    pub fn after(self, heard: Heard, now: Timestamp, patience: &Patience) -> Self {
        match (self, heard) {
            (_, Heard::Reached) => Self::default(),
            (Self::Closed { failures }, Heard::Missed) => {
                let failures = failures.saturating_add(1);
                if patience.failures > 0 && failures >= patience.failures {
                    Self::opened(now, patience.pause_secs)
                } else {
                    Self::Closed { failures }
                }
            }
            (Self::Closed { .. }, Heard::Sent | Heard::Nothing) => self,
            // Calls that went before it opened still come to their ends.
            (Self::Open { until, .. }, Heard::Missed) if now < until => self,
            (Self::Open { pause_secs, .. } | Self::HalfOpen { pause_secs, .. }, Heard::Missed) => {
                let longer = pause_secs.saturating_mul(2).min(patience.longest_secs.max(patience.pause_secs));
                Self::opened(now, longer)
            }
            (Self::Open { until, pause_secs }, Heard::Sent) if now >= until => {
                Self::HalfOpen { until: later(now, pause_secs), pause_secs }
            }
            (Self::HalfOpen { until, pause_secs }, Heard::Sent) if now >= until => {
                Self::HalfOpen { until: later(now, pause_secs), pause_secs }
            }
            // The probe told nothing: the next call is one.
            (Self::HalfOpen { pause_secs, .. }, Heard::Nothing) => Self::Open { until: now, pause_secs },
            (Self::Open { .. } | Self::HalfOpen { .. }, Heard::Sent | Heard::Nothing) => self,
        }
    }

    fn opened(now: Timestamp, pause_secs: u32) -> Self {
        Self::Open { until: later(now, pause_secs), pause_secs }
    }
}

fn later(now: Timestamp, secs: u32) -> Timestamp {
    now.checked_add(std::time::Duration::from_secs(u64::from(secs))).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATIENCE: Patience = Patience { failures: 3, pause_secs: 10, longest_secs: 30 };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn after(heard: &[(Heard, i64)]) -> Breaker {
        heard.iter().fold(Breaker::default(), |breaker, (heard, second)| {
            breaker.after(*heard, at(*second), &PATIENCE)
        })
    }

    const MISSED: [(Heard, i64); 3] = [(Heard::Missed, 0), (Heard::Missed, 0), (Heard::Missed, 1)];

    #[test]
    fn it_opens_after_three_in_a_row_and_lets_one_through_when_the_pause_is_over() {
        assert_eq!(after(&MISSED[..2]).closed_until(at(0)), None);
        let reached = [MISSED[0], MISSED[1], (Heard::Reached, 1), MISSED[2]];
        assert_eq!(after(&reached), Breaker::Closed { failures: 1 }, "only in a row");
        let open = after(&MISSED);
        assert_eq!(open.closed_until(at(5)), Some(at(11)));
        assert_eq!(open.closed_until(at(11)), None);
        let probing = open.after(Heard::Sent, at(11), &PATIENCE);
        assert_eq!(probing.closed_until(at(12)), Some(at(21)), "nobody else goes meanwhile");
        assert_eq!(probing.after(Heard::Reached, at(12), &PATIENCE), Breaker::default());
        assert_eq!(probing.after(Heard::Nothing, at(12), &PATIENCE).closed_until(at(12)), None);
    }

    #[test]
    fn each_pause_is_twice_as_long_up_to_the_longest() {
        let mut breaker = after(&MISSED);
        let mut now = 1;
        for pause in [10, 20, 30, 30] {
            assert_eq!(breaker.closed_until(at(now)), Some(at(now + pause)));
            now += pause;
            breaker = breaker.after(Heard::Sent, at(now), &PATIENCE).after(Heard::Missed, at(now), &PATIENCE);
        }
    }

    #[test]
    fn calls_that_were_under_way_when_it_opened_do_not_open_it_longer() {
        let open = after(&MISSED);
        assert_eq!(open.after(Heard::Missed, at(2), &PATIENCE), open);
    }

    proptest! {
        #[test]
        fn it_always_opens_again_some_day_and_one_call_that_reaches_closes_it(
            heard in prop::collection::vec((0_usize..4, 0_i64..40), 0..40),
        ) {
            let kinds = [Heard::Sent, Heard::Reached, Heard::Missed, Heard::Nothing];
            let (mut breaker, mut now) = (Breaker::default(), 0);
            for (kind, pause) in heard {
                now += pause;
                breaker = breaker.after(kinds[kind], at(now), &PATIENCE);
            }
            let longest = i64::from(PATIENCE.longest_secs);
            prop_assert_eq!(breaker.closed_until(at(now + longest)), None);
            prop_assert_eq!(breaker.after(Heard::Reached, at(now), &PATIENCE).closed_until(at(now)), None);
        }
    }
}
