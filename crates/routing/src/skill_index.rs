//! Index of agents by their skills, to find those that match some work.
//!
//! It is built from the agents of one project and never changes. Each required skill must be the id, the name or a tag of one of the
//! agent's skills; the type of work is compared with tags; a description is compared by its words. An agent none of whose skills accepts
//! the media types of the request is listed with the reason, after all others. Required skills weigh half, the type of work three tenths
//! and the description two tenths of what was asked for.

use std::sync::{Arc, OnceLock};

use rialto_model::{agent::Agent, call::CallTarget, card::Skill, media, routing::WorkDescription};

use crate::{
    media_types::MediaTypeIndex,
    text_index::{TextIndex, TextIndexBuilder, WordOverlaps},
};

/// Weights of the parts of a request.
const REQUIRED_WEIGHT: f64 = 0.5;
const TYPE_WEIGHT: f64 = 0.3;
const DESCRIPTION_WEIGHT: f64 = 0.2;

/// Offset basis of FNV-1a.
const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Maximum number of word occurrences that are compared; beyond that, common words are skipped.
const MAX_WORD_OCCURRENCES: usize = 30_000;

/// Agents of one project by their skills.
pub struct SkillIndex {
    version: u64,
    agents: Vec<Arc<Agent>>,
    /// By agent: index of its first skill. One more is at the end.
    firsts: Vec<u32>,
    /// By skill: index of its agent.
    owners: Vec<u32>,
    /// Hashes of ids, names and tags, each with a skill that has it, sorted.
    labels: Vec<(u64, u32)>,
    /// Hashes of tags alone.
    tags: Vec<(u64, u32)>,
    text: TextIndex,
    /// Accepted media types, once they are needed.
    modes: OnceLock<MediaTypeIndex>,
}

/// Agent that matches some work.
#[derive(Clone, Debug)]
pub struct SkillMatch {
    /// Agent, as it was when the index was built.
    pub agent: Arc<Agent>,
    /// Best matching skill.
    pub skill: Arc<Skill>,
    /// Score of the match, from 0 to 1.
    pub score: f64,
    /// Reasons of the match.
    pub reasons: Vec<String>,
    /// Media types of the request that it does not accept, if any.
    pub lacks: Option<String>,
}

/// Matches for some work.
#[derive(Clone, Debug, Default)]
pub struct SkillMatches {
    /// Best matches, best first.
    pub best: Vec<SkillMatch>,
    /// Number of further matches.
    pub more: usize,
}

/// Requirements of some work, prepared for comparison.
struct WorkRequirements<'a> {
    required: Vec<&'a str>,
    work_type: &'a str,
    /// Agents with a skill that is tagged with the type of work, in order.
    typed: Vec<u32>,
    overlaps: Option<WordOverlaps>,
    /// Media types of the request.
    kinds: Vec<String>,
    /// Indices of the skills that accept them, in order; empty without types.
    takers: Vec<u32>,
}

// === impl SkillMatch ===

impl SkillMatch {
    /// Target of a call to it.
    pub fn target(&self) -> CallTarget {
        CallTarget { agent: Arc::clone(&self.agent), skill: Some(Arc::clone(&self.skill)) }
    }
}

// === impl SkillIndex ===

impl SkillIndex {
    /// Builds the index. The order of agents settles ties.
    pub fn new(version: u64, agents: Vec<Arc<Agent>>) -> Self {
        let (mut firsts, mut owners) = (Vec::with_capacity(agents.len() + 1), Vec::new());
        let (mut labels, mut tags) = (Vec::new(), Vec::new());
        let mut builder = TextIndexBuilder::default();
        for (owner, agent) in (0_u32..).zip(&agents) {
            firsts.push(to_u32(owners.len()));
            for skill in &agent.card.skills {
                let place = to_u32(owners.len());
                owners.push(owner);
                labels.push((label_hash(skill.id.as_str()), place));
                if skill.name != skill.id.as_str() {
                    labels.push((label_hash(&skill.name), place));
                }
                for tag in &skill.tags {
                    let tag = (label_hash(tag), place);
                    labels.push(tag);
                    tags.push(tag);
                }
                builder.add(agent, skill);
            }
        }
        firsts.push(to_u32(owners.len()));
        labels.sort_unstable();
        tags.sort_unstable();
        Self { version, agents, firsts, owners, labels, tags, text: builder.finish(), modes: OnceLock::new() }
    }

    /// Version of the registry it was built from.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Number of agents.
    pub const fn len(&self) -> usize {
        self.agents.len()
    }

    /// True if there are none.
    pub const fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Agents that match some work, best first, at most this number.
    pub fn find_matches(&self, work: &WorkDescription, limit: usize) -> SkillMatches {
        let requirements = self.requirements(work);
        let mut scored: Vec<(bool, f64, u32)> = self
            .candidates(&requirements)
            .into_iter()
            .map(|agent| (self.takes(agent, &requirements), self.score(agent, &requirements), agent))
            .filter(|(_, score, _)| *score > 0.0)
            .collect();
        let order = |a: &(bool, f64, u32), b: &(bool, f64, u32)| {
            b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)).then(a.2.cmp(&b.2))
        };
        let more = scored.len().saturating_sub(limit);
        if more > 0 && limit > 0 {
            scored.select_nth_unstable_by(limit - 1, order);
        }
        scored.truncate(limit);
        scored.sort_unstable_by(order);
        let best = scored
            .into_iter()
            .filter_map(|(_, score, agent)| self.explain_match(agent, score, &requirements))
            .collect();
        SkillMatches { best, more }
    }

    fn requirements<'a>(&self, work: &'a WorkDescription) -> WorkRequirements<'a> {
        let required = work.required_skills.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
        let description = work.description.trim();
        let overlaps =
            (!description.is_empty()).then(|| self.text.overlaps(description, MAX_WORD_OCCURRENCES));
        let work_type = work.work_type.trim();
        let typed = if work_type.is_empty() { Vec::new() } else { self.owners_of(&self.tags, work_type) };
        let kinds: Vec<String> = work.input_modes.iter().map(|kind| media::bare(kind)).collect();
        let modes = || self.modes.get_or_init(|| MediaTypeIndex::new(&self.agents));
        let takers = if kinds.is_empty() { Vec::new() } else { modes().skills_taking(&kinds) };
        WorkRequirements { required: required.collect(), work_type, typed, overlaps, kinds, takers }
    }

    /// Agents that may match: those with everything that is required, or else those with anything that was asked for.
    fn candidates(&self, requirements: &WorkRequirements<'_>) -> Vec<u32> {
        let mut required = requirements.required.iter().map(|item| self.owners_of(&self.labels, item));
        if let Some(first) = required.next() {
            return required.fold(first, |all, next| intersection(&all, &next));
        }
        let mut any = requirements.typed.clone();
        if let Some(overlaps) = &requirements.overlaps {
            any.extend(overlaps.places().iter().filter_map(|place| self.owners.get(*place)));
            any.sort_unstable();
            any.dedup();
        }
        any
    }

    /// Agents with a skill of this label, in order.
    fn owners_of(&self, list: &[(u64, u32)], label: &str) -> Vec<u32> {
        let number = label_hash(label);
        let start = list.partition_point(|(known, _)| *known < number);
        let same = list.get(start..).unwrap_or_default().iter().take_while(|(known, _)| *known == number);
        let mut owners: Vec<u32> =
            same.filter_map(|(_, place)| self.owners.get(*place as usize)).copied().collect();
        owners.dedup();
        owners
    }

    fn places(&self, agent: u32) -> std::ops::Range<usize> {
        let at = |agent: usize| self.firsts.get(agent).map_or(0, |place| *place as usize);
        at(agent as usize)..at(agent as usize + 1)
    }

    /// True if one of an agent's skills accepts the media types of the request.
    fn takes(&self, agent: u32, requirements: &WorkRequirements<'_>) -> bool {
        requirements.kinds.is_empty() || {
            let places = self.places(agent);
            let first = requirements.takers.partition_point(|place| (*place as usize) < places.start);
            requirements.takers.get(first).is_some_and(|place| (*place as usize) < places.end)
        }
    }

    fn skills(&self, agent: u32) -> &[Arc<Skill>] {
        self.agents.get(agent as usize).map_or(&[], |agent| &agent.card.skills)
    }

    /// Score of an agent that has everything that is required.
    fn score(&self, agent: u32, requirements: &WorkRequirements<'_>) -> f64 {
        let mut asked = 0.0;
        let mut score = 0.0;
        if !requirements.required.is_empty() {
            asked += REQUIRED_WEIGHT;
            score += REQUIRED_WEIGHT;
        }
        if !requirements.work_type.is_empty() {
            asked += TYPE_WEIGHT;
            if requirements.typed.binary_search(&agent).is_ok() {
                score += TYPE_WEIGHT;
            }
        }
        if let Some(overlaps) = &requirements.overlaps {
            asked += DESCRIPTION_WEIGHT;
            let best = self.places(agent).map(|place| overlaps.share(place)).fold(0.0, f64::max);
            score += DESCRIPTION_WEIGHT * best;
        }
        if asked > 0.0 { (score / asked).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Match of an agent, with its best skill and the reasons. Labels with equal hashes but different texts do not count.
    fn explain_match(&self, at: u32, score: f64, requirements: &WorkRequirements<'_>) -> Option<SkillMatch> {
        let agent = self.agents.get(at as usize)?;
        let mut reasons = Vec::new();
        for item in &requirements.required {
            let (skill, what) =
                agent.card.skills.iter().find_map(|skill| Some((skill, matching_label(skill, item)?)))?;
            reasons.push(format!("{what} of skill {} is \"{item}\"", skill.id));
        }
        if !requirements.work_type.is_empty() {
            let tagged = agent.card.skills.iter().find(|skill| has_tag(skill, requirements.work_type));
            reasons.push(match tagged {
                Some(skill) => {
                    format!("skill {} is tagged with the work type {}", skill.id, requirements.work_type)
                }
                None => format!("no skill is tagged with the work type {}", requirements.work_type),
            });
        }
        let place = self.best_skill(at, requirements)?;
        let skill = Arc::clone(agent.card.skills.get(place - self.places(at).start)?);
        if let Some(overlaps) = &requirements.overlaps {
            let (matched, count) = (overlaps.matched(place), overlaps.count());
            reasons.push(format!(
                "skill {} is about {matched} of the {count} words of the description ({:.2})",
                skill.id,
                overlaps.share(place)
            ));
        }
        let lacks = describe_missing_types(agent, &skill, requirements);
        if !requirements.kinds.is_empty() && lacks.is_none() {
            reasons.push(format!("skill {} takes {}", skill.id, requirements.kinds.join(" and ")));
        }
        Some(SkillMatch { agent: Arc::clone(agent), skill, score, reasons, lacks })
    }

    /// Best skill: it accepts the media types, then has the type of work, then most of the required labels, then most words of the
    /// description.
    fn best_skill(&self, agent: u32, requirements: &WorkRequirements<'_>) -> Option<usize> {
        let rank = |skill: &Skill, place: usize| {
            let required =
                requirements.required.iter().filter(|item| matching_label(skill, item).is_some()).count();
            let is_tagged = !requirements.work_type.is_empty() && has_tag(skill, requirements.work_type);
            let share = requirements.overlaps.as_ref().map_or(0.0, |overlaps| overlaps.share(place));
            (requirements.takes_all(place), is_tagged, required, share)
        };
        let ranked = self.skills(agent).iter().zip(self.places(agent));
        let ranked = ranked.map(|(skill, place)| (rank(skill, place), place));
        let better = |a: &(bool, bool, usize, f64), b: &(bool, bool, usize, f64)| {
            (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)).then(a.3.total_cmp(&b.3))
        };
        // Of equals, the first.
        ranked
            .reduce(|best, next| if better(&next.0, &best.0).is_gt() { next } else { best })
            .map(|best| best.1)
    }
}

// === impl WorkRequirements ===

impl WorkRequirements<'_> {
    /// True if a skill accepts the media types of the request.
    fn takes_all(&self, place: usize) -> bool {
        self.kinds.is_empty()
            || u32::try_from(place).is_ok_and(|place| self.takers.binary_search(&place).is_ok())
    }
}

/// Media types of the request that a skill does not accept, as a text.
fn describe_missing_types(
    agent: &Agent,
    skill: &Skill,
    requirements: &WorkRequirements<'_>,
) -> Option<String> {
    if requirements.kinds.is_empty() {
        return None;
    }
    let taken = media::accepted_types(agent, Some(skill));
    let missing: Vec<&str> = requirements
        .kinds
        .iter()
        .filter(|kind| !media::is_accepted(kind, &taken))
        .map(String::as_str)
        .collect();
    let (id, missing, taken) = (&skill.id, missing.join(" and "), taken.join(", "));
    (!missing.is_empty()).then(|| format!("its skill {id} takes {taken}, not {missing}"))
}

fn to_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Field of a skill that has this label.
fn matching_label(skill: &Skill, label: &str) -> Option<&'static str> {
    if is_same_label(skill.id.as_str(), label) {
        Some("the id")
    } else if is_same_label(&skill.name, label) {
        Some("the name")
    } else {
        has_tag(skill, label).then_some("a tag")
    }
}

fn has_tag(skill: &Skill, label: &str) -> bool {
    skill.tags.iter().any(|tag| is_same_label(tag, label))
}

/// Compares labels, ignoring case and separators.
fn is_same_label(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    if one.is_ascii() && other.is_ascii() {
        // Most names are, and there are many to be compared.
        return one.len() == other.len() && one.bytes().map(fold_byte).eq(other.bytes().map(fold_byte));
    }
    fold_chars(one).eq(fold_chars(other))
}

/// Normal form of one ASCII byte.
const fn fold_byte(byte: u8) -> u8 {
    match byte {
        b'_' | b'-' | b'\t' => b' ',
        other => other.to_ascii_lowercase(),
    }
}

fn fold_chars(text: &str) -> impl Iterator<Item = char> {
    let fold = |c: char| match c {
        '_' | '-' | '\t' => ' ',
        other => other,
    };
    text.trim().chars().map(fold).flat_map(char::to_lowercase)
}

/// Hash of a label: FNV-1a over its normal form.
fn label_hash(text: &str) -> u64 {
    let with = |number: u64, c: u32| (number ^ u64::from(c)).wrapping_mul(0x0100_0000_01b3);
    let text = text.trim();
    if text.is_ascii() {
        // Most names are, and there are many to be read.
        let fold =
            |byte: u8| if matches!(byte, b'_' | b'-' | b'\t') { b' ' } else { byte.to_ascii_lowercase() };
        return text.bytes().fold(FNV_OFFSET_BASIS, |number, byte| with(number, u32::from(fold(byte))));
    }
    fold_chars(text).fold(FNV_OFFSET_BASIS, |number, c| with(number, u32::from(c)))
}

/// Intersection of two sorted lists.
fn intersection(one: &[u32], other: &[u32]) -> Vec<u32> {
    let (few, many) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    few.iter().filter(|item| many.binary_search(item).is_ok()).copied().collect()
}

#[cfg(test)]
mod tests;
