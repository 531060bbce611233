//! Circuit breaker of one agent: stops calls to an agent that fails, and lets single calls through to find out when it is back.
//!
//! Closed, calls go through. It opens after a number of connection failures in a row, or when enough calls of a time window have failed.
//! Open, no call goes through until a pause is over. Then it is half-open: one call goes through as a probe. If the agent answers
//! it, the breaker closes; if not, it opens again for twice as long.
//!
//! A single caller whose calls all fail while other callers are served opens nothing: the fault is in what that caller sends.

use std::time::Duration;

use rialto_model::clock::Timestamp;

/// Time when a breaker opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerRules {
    /// Connection failures in a row that open it; zero turns the breaker off.
    pub failures_in_a_row: u32,
    /// Share of failed calls in one window that opens it; zero counts no rate.
    pub failure_rate: f64,
    /// Calls that a window must have before its rate counts.
    pub min_calls: u32,
    /// Length of a window.
    pub window: Duration,
    /// First pause.
    pub pause: Duration,
    /// Longest pause.
    pub longest_pause: Duration,
}

/// State of the breaker of one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Calls go through, and their outcomes are counted.
    Closed(OutcomeWindow),
    /// No call goes through.
    Open {
        /// End of the pause.
        until: Timestamp,
        /// Length of the pause.
        pause: Duration,
    },
    /// One call went through as a probe, and its outcome is awaited.
    HalfOpen {
        /// Without an outcome by then, another probe may go.
        until: Timestamp,
        /// Length of the pause before.
        pause: Duration,
    },
}

/// Outcomes of the calls since a failure, within one time window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutcomeWindow {
    began_at: Option<Timestamp>,
    calls: u32,
    failures: u32,
    /// Connection failures since the agent was last reached.
    in_a_row: u32,
    failing: CallerGroup,
    served: CallerGroup,
}

/// Callers as hashes, told apart only as far as one and several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum CallerGroup {
    #[default]
    None,
    One(u64),
    Several,
}

/// Event that changes the state of a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerEvent {
    /// A call goes to the agent.
    Sent,
    /// The agent answered a call, with whatever result.
    Reached,
    /// No connection to the agent: it has not received the call.
    NoConnection,
    /// The agent, or a proxy before it, answered that it is unavailable, or closed the connection without an answer.
    Unavailable,
    /// A call was not made after all, or its outcome says nothing about the agent.
    Nothing,
}

// === impl BreakerRules ===

impl Default for BreakerRules {
    fn default() -> Self {
        Self {
            failures_in_a_row: 5,
            failure_rate: 0.5,
            min_calls: 10,
            window: Duration::from_secs(10),
            pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(5),
        }
    }
}

// === impl BreakerEvent ===

impl BreakerEvent {
    /// True if it counts against the agent.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::NoConnection | Self::Unavailable)
    }
}

// === impl Breaker ===

impl Default for Breaker {
    fn default() -> Self {
        Self::Closed(OutcomeWindow::default())
    }
}

impl Breaker {
    /// Time until which no call goes through, if there is one.
    pub fn blocked_until(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Closed(_) => None,
            Self::Open { until, .. } | Self::HalfOpen { until, .. } => (now < until).then_some(until),
        }
    }

    /// True if calls go through.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closed(_))
    }

    /// Name of the state, as metrics and records spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed(_) => "closed",
            Self::Open { .. } => "open",
            Self::HalfOpen { .. } => "half-open",
        }
    }

    /// State after a signal from a call of `caller`, a hash.
    #[must_use]
    pub fn after(self, event: BreakerEvent, caller: u64, now: Timestamp, rules: &BreakerRules) -> Self {
        match (self, event) {
            (Self::Closed(_), BreakerEvent::Sent | BreakerEvent::Nothing) => self,
            (Self::Closed(window), event) => {
                let window = window.counted(event, caller, now, rules);
                let opens = event.is_failure() && window.is_too_bad(rules);
                if opens { Self::opened(now, rules.pause) } else { Self::Closed(window) }
            }
            (Self::Open { .. } | Self::HalfOpen { .. }, BreakerEvent::Reached) => Self::default(),
            // Calls that went before it opened still come to their ends.
            (Self::Open { until, .. }, BreakerEvent::NoConnection | BreakerEvent::Unavailable)
                if now < until =>
            {
                self
            }
            (
                Self::Open { pause, .. } | Self::HalfOpen { pause, .. },
                BreakerEvent::NoConnection | BreakerEvent::Unavailable,
            ) => Self::opened(now, pause.saturating_mul(2).min(rules.longest_pause.max(rules.pause))),
            (Self::Open { until, pause } | Self::HalfOpen { until, pause }, BreakerEvent::Sent)
                if now >= until =>
            {
                Self::HalfOpen { until: later(now, pause), pause }
            }
            // The probe had no outcome: the next call is one.
            (Self::HalfOpen { pause, .. }, BreakerEvent::Nothing) => Self::Open { until: now, pause },
            (Self::Open { .. } | Self::HalfOpen { .. }, BreakerEvent::Sent | BreakerEvent::Nothing) => self,
        }
    }

    fn opened(now: Timestamp, pause: Duration) -> Self {
        Self::Open { until: later(now, pause), pause }
    }
}

// === impl OutcomeWindow ===

impl OutcomeWindow {
    /// Failures in the present window.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// The window after one more outcome. Outcomes are counted from a failure on: without one there is nothing to compare them with.
    fn counted(mut self, event: BreakerEvent, caller: u64, now: Timestamp, rules: &BreakerRules) -> Self {
        let is_over = self.began_at.is_none_or(|began_at| now >= later(began_at, rules.window));
        if is_over {
            if !event.is_failure() {
                return Self::default();
            }
            self = Self { began_at: Some(now), in_a_row: self.in_a_row, ..Self::default() };
        }
        self.calls = self.calls.saturating_add(1);
        if event.is_failure() {
            self.failures = self.failures.saturating_add(1);
            self.failing.add(caller);
        } else {
            self.served.add(caller);
        }
        self.in_a_row = match event {
            BreakerEvent::NoConnection => self.in_a_row.saturating_add(1),
            BreakerEvent::Reached => 0,
            BreakerEvent::Sent | BreakerEvent::Unavailable | BreakerEvent::Nothing => self.in_a_row,
        };
        self
    }

    fn is_too_bad(&self, rules: &BreakerRules) -> bool {
        if rules.failures_in_a_row == 0 {
            return false;
        }
        if self.in_a_row >= rules.failures_in_a_row {
            return true;
        }
        let is_often = rules.failure_rate > 0.0
            && self.calls >= rules.min_calls
            && f64::from(self.failures) >= rules.failure_rate * f64::from(self.calls);
        is_often && !self.is_one_callers_fault()
    }

    fn is_one_callers_fault(&self) -> bool {
        match (self.failing, self.served) {
            (CallerGroup::One(failing), CallerGroup::One(served)) => failing != served,
            (CallerGroup::One(_), CallerGroup::Several) => true,
            _ => false,
        }
    }
}

// === impl CallerGroup ===

impl CallerGroup {
    fn add(&mut self, caller: u64) {
        *self = match *self {
            Self::None => Self::One(caller),
            Self::One(known) if known == caller => Self::One(known),
            Self::One(_) | Self::Several => Self::Several,
        };
    }
}

fn later(now: Timestamp, pause: Duration) -> Timestamp {
    now.checked_add(pause).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANN: u64 = 1;
    const BOB: u64 = 2;

    const RULES: BreakerRules = BreakerRules {
        failures_in_a_row: 3,
        failure_rate: 0.5,
        min_calls: 10,
        window: Duration::from_secs(10),
        pause: Duration::from_secs(10),
        longest_pause: Duration::from_secs(30),
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn after(events: &[(BreakerEvent, i64)]) -> Breaker {
        events.iter().fold(Breaker::default(), |breaker, (event, second)| {
            breaker.after(*event, ANN, at(*second), &RULES)
        })
    }

    fn after_calls(calls: impl IntoIterator<Item = (BreakerEvent, u64)>) -> Breaker {
        calls
            .into_iter()
            .fold(Breaker::default(), |breaker, (event, caller)| breaker.after(event, caller, at(0), &RULES))
    }

    const REFUSED: [(BreakerEvent, i64); 3] =
        [(BreakerEvent::NoConnection, 0), (BreakerEvent::NoConnection, 0), (BreakerEvent::NoConnection, 1)];

    #[test]
    fn it_opens_after_three_connection_failures_in_a_row_and_lets_one_call_through_after_the_pause() {
        assert_eq!(after(&REFUSED[..2]).blocked_until(at(0)), None);
        let reached = [REFUSED[0], REFUSED[1], (BreakerEvent::Reached, 1), REFUSED[2]];
        assert!(after(&reached).is_closed(), "only in a row");
        let open = after(&REFUSED);
        assert_eq!(open.blocked_until(at(5)), Some(at(11)));
        assert_eq!(open.blocked_until(at(11)), None);
        let probing = open.after(BreakerEvent::Sent, ANN, at(11), &RULES);
        assert_eq!(probing.blocked_until(at(12)), Some(at(21)), "no other call goes meanwhile");
        assert_eq!(probing.after(BreakerEvent::Reached, ANN, at(12), &RULES), Breaker::default());
        assert_eq!(probing.after(BreakerEvent::Nothing, ANN, at(12), &RULES).blocked_until(at(12)), None);
    }

    #[test]
    fn it_opens_when_half_of_ten_calls_fail_and_not_when_fewer_do() {
        let mixed = |failing: usize| {
            // The first is a failure, because outcomes count from one on, and the last, because only a failure opens.
            let event = |at| {
                if at == 0 || at > 10 - failing { BreakerEvent::Unavailable } else { BreakerEvent::Reached }
            };
            after_calls((0..10).map(|at| (event(at), ANN)))
        };
        assert!(!mixed(5).is_closed());
        assert!(mixed(4).is_closed());
        assert!(
            after_calls((0..9).map(|_| (BreakerEvent::Unavailable, ANN))).is_closed(),
            "nine calls are too few"
        );
    }

    #[test]
    fn failures_of_an_earlier_window_do_not_count() {
        let spread = (0..20).map(|at| (BreakerEvent::Unavailable, at * 2)).collect::<Vec<_>>();
        assert!(after(&spread).is_closed());
        let dense = (0..20).map(|at| (BreakerEvent::Unavailable, at / 2)).collect::<Vec<_>>();
        assert!(!after(&dense).is_closed());
    }

    #[test]
    fn one_caller_whose_calls_all_fail_opens_nothing_while_another_is_served() {
        let calls = (0..40).map(|at| {
            if at % 4 == 1 { (BreakerEvent::Reached, BOB) } else { (BreakerEvent::Unavailable, ANN) }
        });
        assert!(after_calls(calls).is_closed());
        let calls = (0..40).map(|at| (BreakerEvent::Unavailable, if at % 4 == 1 { BOB } else { ANN }));
        assert!(!after_calls(calls).is_closed());
    }

    #[test]
    fn each_pause_is_twice_as_long_up_to_the_longest() {
        let mut breaker = after(&REFUSED);
        let mut now = 1;
        for pause in [10, 20, 30, 30] {
            assert_eq!(breaker.blocked_until(at(now)), Some(at(now + pause)));
            now += pause;
            let probing = breaker.after(BreakerEvent::Sent, ANN, at(now), &RULES);
            breaker = probing.after(BreakerEvent::Unavailable, ANN, at(now), &RULES);
        }
    }

    #[test]
    fn calls_that_were_under_way_when_it_opened_do_not_open_it_longer() {
        let open = after(&REFUSED);
        assert_eq!(open.after(BreakerEvent::NoConnection, ANN, at(2), &RULES), open);
    }

    #[test]
    fn without_a_number_of_failures_it_never_opens() {
        let off = BreakerRules { failures_in_a_row: 0, ..RULES };
        let breaker = (0..100).fold(Breaker::default(), |breaker, _| {
            breaker.after(BreakerEvent::NoConnection, ANN, at(0), &off)
        });
        assert!(breaker.is_closed());
    }

    proptest! {
        #[test]
        fn it_always_lets_a_call_through_again_and_one_that_reaches_the_agent_closes_it(
            events in prop::collection::vec((0_usize..5, 0_u64..3, 0_i64..40), 0..40),
        ) {
            let kinds =
                [BreakerEvent::Sent, BreakerEvent::Reached, BreakerEvent::NoConnection, BreakerEvent::Unavailable, BreakerEvent::Nothing];
            let (mut breaker, mut now) = (Breaker::default(), 0);
            for (kind, caller, pause) in events {
                now += pause;
                breaker = breaker.after(kinds[kind], caller, at(now), &RULES);
            }
            prop_assert_eq!(breaker.blocked_until(at(now + 30)), None);
            prop_assert_eq!(breaker.after(BreakerEvent::Reached, ANN, at(now), &RULES).blocked_until(at(now)), None);
        }
    }
}
