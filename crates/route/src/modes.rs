//! Which skills take which media types.
//!
//! Most work says nothing about media types, so this is read from the cards when it is first asked for.

use std::{collections::BTreeMap, sync::Arc};

use rialto_model::{agent::Agent, media};

/// The skills of an index by what they take.
pub(crate) struct Modes {
    /// By what cards say: the places of the skills that say it, in order.
    declared: BTreeMap<String, Vec<u32>>,
    /// The places of those that say nothing, and so take everything.
    open: Vec<u32>,
}

// === impl Modes ===

impl Modes {
    /// Reads what the skills of these agents take, in the order of the index.
    pub(crate) fn of(agents: &[Arc<Agent>]) -> Self {
        let mut modes = Self { declared: BTreeMap::new(), open: Vec::new() };
        let mut place = 0;
        for agent in agents {
            // What the agent says for all of its skills is read once.
            let usual = media::accepted_types(agent, None);
            for skill in &agent.card.skills {
                let taken = if skill.input_modes.is_empty() { &usual } else { &skill.input_modes };
                for kind in taken {
                    modes.declared.entry(media::bare(kind)).or_default().push(place);
                }
                if taken.is_empty() {
                    modes.open.push(place);
                }
                place += 1;
            }
        }
        modes
    }

    /// The places of the skills that take all of these, in order.
    pub(crate) fn takers(&self, kinds: &[String]) -> Vec<u32> {
        let mut all: Option<Vec<u32>> = None;
        for kind in kinds {
            let covering = self.declared.iter().filter(|(taken, _)| media::includes_type(taken, kind));
            let mut places: Vec<u32> = covering.flat_map(|(_, places)| places).copied().collect();
            places.extend(&self.open);
            places.sort_unstable();
            places.dedup();
            all = Some(match all {
                None => places,
                Some(before) => {
                    before.into_iter().filter(|place| places.binary_search(place).is_ok()).collect()
                }
            });
        }
        all.unwrap_or_default()
    }
}
