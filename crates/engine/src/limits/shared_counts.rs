//! Counts of calls as they are exchanged with the other processes on the store.

use std::mem;

use rialto_model::{clock::Timestamp, store::CallCount};

use super::{CallLimits, MINUTE};

/// Place of a count in this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CountPlace {
    /// A window of an org.
    Org(String, usize),
    /// A tool and a caller, as a hash.
    Tool(u64),
}

/// Counts that are on their way to the store.
pub(crate) type TakenCounts = Vec<(CountPlace, CallCount)>;

// === impl Limits ===

impl CallLimits {
    /// Takes the calls that were counted since the last time. Windows of orgs that are in use, or whose total is not known yet,
    /// come with them.
    pub(crate) fn take_counts(&self, now: Timestamp) -> TakenCounts {
        let mut taken = Vec::new();
        for (org, windows) in &*self.orgs.read() {
            for (place, window) in windows.lock().iter_mut().enumerate().filter(|(_, window)| window.most > 0)
            {
                window.roll(now);
                // Others may have added to it since.
                if window.used > 0 || !window.is_known {
                    window.is_known = true;
                    let count = CallCount {
                        key: format!("org {org} {}", window.name),
                        began_at: window.began_at,
                        ends_at: window.began_at + window.seconds,
                        calls: mem::take(&mut window.unsent),
                    };
                    taken.push((CountPlace::Org(org.clone(), place), count));
                }
            }
        }
        let mut tools = self.tools.lock();
        let (began_at, unsent) = (tools.began_at, mem::take(&mut tools.unsent));
        for key in unsent {
            if let Some(tool) = tools.used.get_mut(&key) {
                let calls = mem::take(&mut tool.unsent);
                let count = CallCount { key: tool.key.clone(), began_at, ends_at: began_at + MINUTE, calls };
                taken.push((CountPlace::Tool(key), count));
            }
        }
        taken
    }

    /// Applies the totals of the store, plus the calls that were counted here meanwhile.
    pub(crate) fn apply_totals(&self, taken: &TakenCounts, totals: &[u64]) {
        for ((place, count), total) in taken.iter().zip(totals) {
            self.change_count(place, count, |used, unsent| *used = total.saturating_add(*unsent));
        }
    }

    /// Counts these again as not sent.
    pub(crate) fn return_counts(&self, taken: &TakenCounts) {
        for (place, count) in taken {
            self.change_count(place, count, |_, unsent| *unsent += count.calls);
            match place {
                CountPlace::Org(org, place) => {
                    if let Some(windows) = self.orgs.read().get(org)
                        && let Some(window) = windows.lock().get_mut(*place)
                    {
                        window.is_known = false;
                    }
                }
                CountPlace::Tool(key) => self.tools.lock().unsent.push(*key),
            }
        }
    }

    /// Changes calls and unsent calls of a window, unless it is over.
    fn change_count(&self, place: &CountPlace, count: &CallCount, change: impl FnOnce(&mut u64, &mut u64)) {
        match place {
            CountPlace::Org(org, place) => {
                let orgs = self.orgs.read();
                let Some(windows) = orgs.get(org) else { return };
                if let Some(window) =
                    windows.lock().get_mut(*place).filter(|window| window.began_at == count.began_at)
                {
                    change(&mut window.used, &mut window.unsent);
                }
            }
            CountPlace::Tool(key) => {
                let mut tools = self.tools.lock();
                if tools.began_at == count.began_at
                    && let Some(tool) = tools.used.get_mut(key)
                {
                    change(&mut tool.used, &mut tool.unsent);
                }
            }
        }
    }
}
