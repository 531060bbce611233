//! Who fits some work, and why.
//!
//! An index is made of the agents of one project and never changes. What is required must be there, each item as the id, the
//! name or a tag of one of the agent's skills; a type of work is looked for among tags; a description is compared by its words.
//! An agent none of whose skills takes the media types that will be sent is told of, and why, but comes after all others.
//! Of what was asked for, required skills count half, the type of work three tenths and the description two tenths.

use std::sync::{Arc, OnceLock};

use rialto_model::{agent::Agent, call::CallTarget, card::Skill, media, routing::WorkDescription};

use crate::{
    modes::Modes,
    text::{Overlaps, Reader, TextIndex},
};

/// How much each part of what was asked for counts.
const REQUIRED: f64 = 0.5;
const TYPE: f64 = 0.3;
const DESCRIPTION: f64 = 0.2;

/// Where the numbers of names begin.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// So many occurrences of the words of a description are looked at: beyond that, common words are passed over.
const BUDGET: usize = 30_000;

/// The agents of one project by what they can do.
pub struct SkillIndex {
    version: u64,
    agents: Vec<Arc<Agent>>,
    /// By agent: the place of its first skill. One more stands at the end.
    firsts: Vec<u32>,
    /// By skill: whose it is.
    owners: Vec<u32>,
    /// Numbers of ids, names and tags, each with a skill that has it, in order.
    labels: Vec<(u64, u32)>,
    /// The same for tags alone.
    tags: Vec<(u64, u32)>,
    text: TextIndex,
    /// What skills take, once somebody has asked.
    modes: OnceLock<Modes>,
}

/// An agent that fits.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The agent, as it was when the index was made.
    pub agent: Arc<Agent>,
    /// The skill that fits best.
    pub skill: Arc<Skill>,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// Why.
    pub reasons: Vec<String>,
    /// What will be sent and it does not take, if so.
    pub lacks: Option<String>,
}

/// All that fit.
#[derive(Clone, Debug, Default)]
pub struct Fits {
    /// The best of them, best first.
    pub best: Vec<Fit>,
    /// How many more there are.
    pub more: usize,
}

/// Some work, made ready to be compared.
struct Wanted<'a> {
    required: Vec<&'a str>,
    work_type: &'a str,
    /// Who has a skill that is tagged with the type of work, in order.
    typed: Vec<u32>,
    overlaps: Option<Overlaps>,
    /// The media types that will be sent.
    kinds: Vec<String>,
    /// The places of the skills that take them, in order; only if there are any.
    takers: Vec<u32>,
}

// === impl Fit ===

impl Fit {
    /// What a call to it is made to.
    pub fn target(&self) -> CallTarget {
        CallTarget { agent: Arc::clone(&self.agent), skill: Some(Arc::clone(&self.skill)) }
    }
}

// === impl SkillIndex ===

impl SkillIndex {
    /// Reads what these agents can do. The order they come in settles ties.
    pub fn of(version: u64, agents: Vec<Arc<Agent>>) -> Self {
        let (mut firsts, mut owners) = (Vec::with_capacity(agents.len() + 1), Vec::new());
        let (mut labels, mut tags) = (Vec::new(), Vec::new());
        let mut reader = Reader::default();
        for (owner, agent) in (0_u32..).zip(&agents) {
            firsts.push(count(owners.len()));
            for skill in &agent.card.skills {
                let place = count(owners.len());
                owners.push(owner);
                labels.push((number(skill.id.as_str()), place));
                if skill.name != skill.id.as_str() {
                    labels.push((number(&skill.name), place));
                }
                for tag in &skill.tags {
                    let tag = (number(tag), place);
                    labels.push(tag);
                    tags.push(tag);
                }
                reader.read(agent, skill);
            }
        }
        firsts.push(count(owners.len()));
        labels.sort_unstable();
        tags.sort_unstable();
        Self { version, agents, firsts, owners, labels, tags, text: reader.finish(), modes: OnceLock::new() }
    }

    /// The version of the registry this was made from.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// How many agents there are.
    pub const fn len(&self) -> usize {
        self.agents.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Who fits some work, best first, at most so many.
    pub fn fits(&self, work: &WorkDescription, limit: usize) -> Fits {
        let wanted = self.wanted(work);
        let mut scored: Vec<(bool, f64, u32)> = self
            .candidates(&wanted)
            .into_iter()
            .map(|agent| (self.takes(agent, &wanted), self.score(agent, &wanted), agent))
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
        let best =
            scored.into_iter().filter_map(|(_, score, agent)| self.fit(agent, score, &wanted)).collect();
        Fits { best, more }
    }

    fn wanted<'a>(&self, work: &'a WorkDescription) -> Wanted<'a> {
        let required = work.required_skills.iter().map(|item| item.trim()).filter(|item| !item.is_empty());
        let description = work.description.trim();
        let overlaps = (!description.is_empty()).then(|| self.text.overlaps(description, BUDGET));
        let work_type = work.work_type.trim();
        let typed = if work_type.is_empty() { Vec::new() } else { self.owners_of(&self.tags, work_type) };
        let kinds: Vec<String> = work.input_modes.iter().map(|kind| media::bare(kind)).collect();
        let modes = || self.modes.get_or_init(|| Modes::of(&self.agents));
        let takers = if kinds.is_empty() { Vec::new() } else { modes().takers(&kinds) };
        Wanted { required: required.collect(), work_type, typed, overlaps, kinds, takers }
    }

    /// Those who may fit: who has all that is required, or else who has anything that was asked for.
    fn candidates(&self, wanted: &Wanted<'_>) -> Vec<u32> {
        let mut required = wanted.required.iter().map(|item| self.owners_of(&self.labels, item));
        if let Some(first) = required.next() {
            return required.fold(first, |all, next| intersection(&all, &next));
        }
        let mut any = wanted.typed.clone();
        if let Some(overlaps) = &wanted.overlaps {
            any.extend(overlaps.places().iter().filter_map(|place| self.owners.get(*place)));
            any.sort_unstable();
            any.dedup();
        }
        any
    }

    /// The agents with a skill that is called so, in order.
    fn owners_of(&self, list: &[(u64, u32)], label: &str) -> Vec<u32> {
        let number = number(label);
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

    /// Whether one of an agent's skills takes what will be sent.
    fn takes(&self, agent: u32, wanted: &Wanted<'_>) -> bool {
        wanted.kinds.is_empty() || {
            let places = self.places(agent);
            let first = wanted.takers.partition_point(|place| (*place as usize) < places.start);
            wanted.takers.get(first).is_some_and(|place| (*place as usize) < places.end)
        }
    }

    fn skills(&self, agent: u32) -> &[Arc<Skill>] {
        self.agents.get(agent as usize).map_or(&[], |agent| &agent.card.skills)
    }

    /// How well an agent fits that has all that is required.
    fn score(&self, agent: u32, wanted: &Wanted<'_>) -> f64 {
        let mut asked = 0.0;
        let mut score = 0.0;
        if !wanted.required.is_empty() {
            asked += REQUIRED;
            score += REQUIRED;
        }
        if !wanted.work_type.is_empty() {
            asked += TYPE;
            if wanted.typed.binary_search(&agent).is_ok() {
                score += TYPE;
            }
        }
        if let Some(overlaps) = &wanted.overlaps {
            asked += DESCRIPTION;
            let best = self.places(agent).map(|place| overlaps.share(place)).fold(0.0, f64::max);
            score += DESCRIPTION * best;
        }
        if asked > 0.0 { (score / asked).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The same agent with its best skill and the reasons. Two texts that only have the same number do not count.
    fn fit(&self, at: u32, score: f64, wanted: &Wanted<'_>) -> Option<Fit> {
        let agent = self.agents.get(at as usize)?;
        let mut reasons = Vec::new();
        for item in &wanted.required {
            let (skill, what) =
                agent.card.skills.iter().find_map(|skill| Some((skill, label_of(skill, item)?)))?;
            reasons.push(format!("{what} of skill {} is \"{item}\"", skill.id));
        }
        if !wanted.work_type.is_empty() {
            let tagged = agent.card.skills.iter().find(|skill| has_tag(skill, wanted.work_type));
            reasons.push(match tagged {
                Some(skill) => {
                    format!("skill {} is tagged with the work type {}", skill.id, wanted.work_type)
                }
                None => format!("no skill is tagged with the work type {}", wanted.work_type),
            });
        }
        let place = self.best_skill(at, wanted)?;
        let skill = Arc::clone(agent.card.skills.get(place - self.places(at).start)?);
        if let Some(overlaps) = &wanted.overlaps {
            let (matched, count) = (overlaps.matched(place), overlaps.count());
            reasons.push(format!(
                "skill {} is about {matched} of the {count} words of the description ({:.2})",
                skill.id,
                overlaps.share(place)
            ));
        }
        let lacks = lacking(agent, &skill, wanted);
        if !wanted.kinds.is_empty() && lacks.is_none() {
            reasons.push(format!("skill {} takes {}", skill.id, wanted.kinds.join(" and ")));
        }
        Some(Fit { agent: Arc::clone(agent), skill, score, reasons, lacks })
    }

    /// The skill that takes what will be sent, then is of this type of work, then has most of what is required, then is most about the description.
    fn best_skill(&self, agent: u32, wanted: &Wanted<'_>) -> Option<usize> {
        let rank = |skill: &Skill, place: usize| {
            let required = wanted.required.iter().filter(|item| label_of(skill, item).is_some()).count();
            let is_tagged = !wanted.work_type.is_empty() && has_tag(skill, wanted.work_type);
            let share = wanted.overlaps.as_ref().map_or(0.0, |overlaps| overlaps.share(place));
            (wanted.may_take(place), is_tagged, required, share)
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

// === impl Wanted ===

impl Wanted<'_> {
    /// Whether the skill at this place takes what will be sent.
    fn may_take(&self, place: usize) -> bool {
        self.kinds.is_empty()
            || u32::try_from(place).is_ok_and(|place| self.takers.binary_search(&place).is_ok())
    }
}

/// What will be sent and a skill does not take, in words.
fn lacking(agent: &Agent, skill: &Skill, wanted: &Wanted<'_>) -> Option<String> {
    if wanted.kinds.is_empty() {
        return None;
    }
    let taken = media::accepted_types(agent, Some(skill));
    let missing: Vec<&str> =
        wanted.kinds.iter().filter(|kind| !media::is_accepted(kind, &taken)).map(String::as_str).collect();
    let (id, missing, taken) = (&skill.id, missing.join(" and "), taken.join(", "));
    (!missing.is_empty()).then(|| format!("its skill {id} takes {taken}, not {missing}"))
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What of a skill is called so.
fn label_of(skill: &Skill, label: &str) -> Option<&'static str> {
    if is_same(skill.id.as_str(), label) {
        Some("the id")
    } else if is_same(&skill.name, label) {
        Some("the name")
    } else {
        has_tag(skill, label).then_some("a tag")
    }
}

fn has_tag(skill: &Skill, label: &str) -> bool {
    skill.tags.iter().any(|tag| is_same(tag, label))
}

/// Names are the same whatever their case, and whatever joins their words.
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.trim(), other.trim());
    if one.is_ascii() && other.is_ascii() {
        // Most names are, and there are many to be compared.
        return one.len() == other.len() && one.bytes().map(plain).eq(other.bytes().map(plain));
    }
    folded(one).eq(folded(other))
}

/// The same for one byte of a plain text.
const fn plain(byte: u8) -> u8 {
    match byte {
        b'_' | b'-' | b'\t' => b' ',
        other => other.to_ascii_lowercase(),
    }
}

fn folded(text: &str) -> impl Iterator<Item = char> {
    let fold = |c: char| match c {
        '_' | '-' | '\t' => ' ',
        other => other,
    };
    text.trim().chars().map(fold).flat_map(char::to_lowercase)
}

/// A number that is the same for names that are the same: FNV-1a over what is compared.
fn number(text: &str) -> u64 {
    let with = |number: u64, c: u32| (number ^ u64::from(c)).wrapping_mul(0x0100_0000_01b3);
    let text = text.trim();
    if text.is_ascii() {
        // Most names are, and there are many to be read.
        let fold =
            |byte: u8| if matches!(byte, b'_' | b'-' | b'\t') { b' ' } else { byte.to_ascii_lowercase() };
        return text.bytes().fold(BASIS, |number, byte| with(number, u32::from(fold(byte))));
    }
    folded(text).fold(BASIS, |number, c| with(number, u32::from(c)))
}

/// What is in both of two ordered lists.
fn intersection(one: &[u32], other: &[u32]) -> Vec<u32> {
    let (few, many) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    few.iter().filter(|item| many.binary_search(item).is_ok()).copied().collect()
}

#[cfg(test)]
mod tests;
