//! Index of skills by the media types they accept.
//!
//! Most work names no media types, so it is built when it is first needed.

use std::{collections::BTreeMap, sync::Arc};

use rialto_model::{agent::Agent, media};

/// Skills by accepted media type.
pub(crate) struct MediaTypeIndex {
    /// Indices of skills by declared media type, in order.
    declared: BTreeMap<String, Vec<u32>>,
    /// Indices of skills that declare none, and so accept everything.
    open: Vec<u32>,
}

// === impl MediaTypeIndex ===

impl MediaTypeIndex {
    /// Builds the index from these agents, in the order of the skill index.
    pub(crate) fn new(agents: &[Arc<Agent>]) -> Self {
        let mut index = Self { declared: BTreeMap::new(), open: Vec::new() };
        let mut place = 0;
        for agent in agents {
            // Types that the agent declares for all of its skills are read once.
            let usual = media::accepted_types(agent, None);
            for skill in &agent.card.skills {
                let taken = if skill.input_modes.is_empty() { &usual } else { &skill.input_modes };
                for kind in taken {
                    index.declared.entry(media::bare(kind)).or_default().push(place);
                }
                if taken.is_empty() {
                    index.open.push(place);
                }
                place += 1;
            }
        }
        index
    }

    /// Indices of the skills that accept all of these types, in order.
    pub(crate) fn skills_taking(&self, kinds: &[String]) -> Vec<u32> {
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
