//! Full-text index of skills.
//!
//! It is built once and never changes. Words are ranked by BM25 over weighted fields: a name weighs more than a description. A word that is
//! not in the index matches words with that prefix, or words one or two edits away. The same query has the same result, in the same order,
//! and a result says which words matched.

use rialto_model::{agent::Agent, card::Skill, maps::FastMap};

/// Weight of a word by its field.
const NAME_WEIGHT: f32 = 3.0;
const TAG_WEIGHT: f32 = 2.0;
const AGENT_WEIGHT: f32 = 1.5;
const DESCRIPTION_WEIGHT: f32 = 1.0;
const EXAMPLE_WEIGHT: f32 = 0.5;

/// BM25 parameters: how soon repetitions of a word stop counting, and how much long texts are penalized.
const BM25_SATURATION: f32 = 1.2;
const BM25_LENGTH: f32 = 0.4;

/// Weight of a similar word: with this prefix, one edit away, two edits away.
const PREFIX_WEIGHT: f32 = 0.8;
const ONE_EDIT_WEIGHT: f32 = 0.6;
const TWO_EDITS_WEIGHT: f32 = 0.4;

/// Maximum number of query words, and of index words that one query word matches.
const MAX_QUERY_WORDS: usize = 32;
const MAX_SIMILAR_WORDS: usize = 16;

/// Length below which words match exactly only.
const MIN_WORD_LENGTH: usize = 3;

/// Maximum length of a word; longer ones are cut.
const MAX_WORD_LENGTH: usize = 40;

/// Words of skills. A skill is known by its index in the order it was added.
pub struct TextIndex {
    /// All words, sorted, each with the skills that have it.
    words: Vec<(Box<str>, Vec<WordPosting>)>,
    places: FastMap<Box<str>, u32>,
    /// Number of words of each skill, relative to the average.
    lengths: Vec<f32>,
}

/// Builder of a text index.
#[derive(Default)]
pub struct TextIndexBuilder {
    numbers: FastMap<Box<str>, u32>,
    postings: Vec<Vec<WordPosting>>,
    lengths: Vec<f32>,
    word: String,
}

/// Occurrence of a word in a skill.
#[derive(Clone, Copy)]
struct WordPosting {
    place: u32,
    weight: f32,
}

/// Score of a skill for the words of a query so far.
#[derive(Clone, Copy, Default)]
struct SkillGain {
    sum: f32,
    words: u32,
    current: f32,
}

/// Skill that matches a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextMatch {
    /// Index of the skill.
    pub place: usize,
    /// Score; comparable only within one query.
    pub score: f32,
    /// Number of query words that it has.
    pub matched: usize,
}

/// Scores of all skills that have any word of a query.
pub struct WordOverlaps {
    gains: Vec<SkillGain>,
    places: Vec<usize>,
    /// Number of different words of the query.
    count: usize,
    /// Score of a skill that has each known word once.
    max_gain: f32,
}

// === impl TextIndexBuilder ===

impl TextIndexBuilder {
    /// Adds one skill of an agent.
    pub fn add(&mut self, agent: &Agent, skill: &Skill) {
        let place = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        let mut length = 0.0_f32;
        let (numbers, postings) = (&mut self.numbers, &mut self.postings);
        let word = &mut self.word;
        fields(agent, skill, &mut |text, weight| {
            each_word(text, word, &mut |word| {
                length += 1.0;
                let number = word_number(numbers, postings, word);
                let Some(list) = postings.get_mut(number as usize) else { return };
                match list.last_mut() {
                    // The word occurred in this skill before.
                    Some(last) if last.place == place => last.weight += weight,
                    _ => list.push(WordPosting { place, weight }),
                }
            });
        });
        self.lengths.push(length);
    }

    /// Builds the index.
    pub fn finish(self) -> TextIndex {
        let mut postings = self.postings;
        let mut words: Vec<(Box<str>, Vec<WordPosting>)> =
            self.numbers.into_iter().map(|(word, at)| (word, take_postings(&mut postings, at))).collect();
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let places = (0..).zip(&words).map(|(at, (word, _))| (word.clone(), at)).collect();
        TextIndex { words, places, lengths: normalize_lengths(self.lengths) }
    }
}

// === impl WordOverlaps ===

impl WordOverlaps {
    /// Indices of the skills that have any of the words.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// Number of different query words.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Number of query words that a skill has.
    pub fn matched(&self, place: usize) -> usize {
        self.gains.get(place).map_or(0, |gain| gain.words as usize)
    }

    /// Share of the query that a skill covers, from 0 to 1. Rare words count more than common ones.
    pub fn share(&self, place: usize) -> f64 {
        let Some(gain) = self.gains.get(place).filter(|gain| gain.words > 0 && self.max_gain > 0.0) else {
            return 0.0;
        };
        f64::from((gain.sum / self.max_gain).min(1.0) * self.weight_of(*gain))
    }

    /// Skills with all words rank before skills with one frequent word.
    fn weight_of(&self, gain: SkillGain) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "both are small")]
        let share = gain.words as f32 / self.count.max(1) as f32;
        0.5 + 0.5 * share
    }
}

// === impl TextIndex ===

impl TextIndex {
    /// Skills that match a query, best first.
    pub fn find(&self, query: &str) -> Vec<TextMatch> {
        let overlaps = self.overlaps(query, usize::MAX);
        let hit = |place: &usize| {
            let gain = overlaps.gains.get(*place)?;
            let score = gain.sum * overlaps.weight_of(*gain);
            Some(TextMatch { place: *place, score, matched: gain.words as usize })
        };
        let mut hits: Vec<TextMatch> = overlaps.places.iter().filter_map(hit).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        hits
    }

    /// Scores of all skills for a query. If the words have more occurrences than `budget`, the most common words,
    /// which say the least, are skipped.
    pub fn overlaps(&self, query: &str, budget: usize) -> WordOverlaps {
        let mut query_words: Vec<String> = Vec::new();
        each_word(query, &mut String::new(), &mut |word| {
            if query_words.len() < MAX_QUERY_WORDS && !query_words.iter().any(|known| known == word) {
                query_words.push(word.to_owned());
            }
        });
        let mut similar: Vec<_> = query_words.iter().map(|word| self.similar_words(word)).collect();
        if budget < usize::MAX {
            self.drop_common_words(budget, &mut similar);
        }
        let max_gain = similar.iter().map(|variants| self.max_gain(variants)).sum();
        // By skill: score so far, number of words, and score by the current word.
        let mut gains = vec![SkillGain::default(); self.lengths.len()];
        let (mut having, mut places) = (Vec::new(), Vec::new());
        for variants in &similar {
            for (at, share) in variants {
                self.add_gains(*at, *share, &mut gains, &mut having);
            }
            for place in having.drain(..) {
                let Some(gain) = gains.get_mut(place) else { continue };
                if gain.words == 0 {
                    places.push(place);
                }
                *gain = SkillGain { sum: gain.sum + gain.current, words: gain.words + 1, current: 0.0 };
            }
        }
        WordOverlaps { gains, places, count: query_words.len(), max_gain }
    }

    /// Drops the most common words until the rest is within a budget; the rarest stays whatever it costs.
    fn drop_common_words(&self, budget: usize, similar: &mut Vec<Vec<(usize, f32)>>) {
        let cost = |variants: &Vec<(usize, f32)>| -> usize {
            variants.iter().filter_map(|(at, _)| self.words.get(*at)).map(|(_, list)| list.len()).sum()
        };
        similar.retain(|variants| !variants.is_empty());
        similar.sort_by_key(cost);
        let mut spent = 0_usize;
        let mut is_first = true;
        similar.retain(|variants| {
            spent = spent.saturating_add(cost(variants));
            std::mem::take(&mut is_first) || spent <= budget
        });
    }

    /// Score of a word for a skill of average length that has it once.
    fn max_gain(&self, variants: &[(usize, f32)]) -> f32 {
        let counts =
            variants.iter().filter_map(|(at, share)| Some(share * self.rarity(self.words.get(*at)?.1.len())));
        counts.fold(0.0, f32::max)
    }

    fn rarity(&self, some: usize) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a rarity need not be exact")]
        let (all, some) = (self.lengths.len() as f32, some as f32);
        (1.0 + (all - some + 0.5) / (some + 0.5)).ln()
    }

    /// Index words that match a query word, and the weight of each.
    fn similar_words(&self, word: &str) -> Vec<(usize, f32)> {
        if let Some(at) = self.places.get(word) {
            return vec![(*at as usize, 1.0)];
        }
        if word.len() < MIN_WORD_LENGTH {
            return Vec::new();
        }
        let first = self.words.partition_point(|(known, _)| &**known < word);
        let begin = |(_, (known, _)): &(usize, &(Box<str>, Vec<WordPosting>))| known.starts_with(word);
        let beginning = self.words.iter().enumerate().skip(first).take_while(begin);
        let mut similar: Vec<(usize, f32)> =
            beginning.take(MAX_SIMILAR_WORDS).map(|(at, _)| (at, PREFIX_WEIGHT)).collect();
        let off = if word.len() >= 8 { 2 } else { usize::from(word.len() >= 4) };
        if similar.is_empty() && off > 0 {
            let initial = word.chars().next();
            let start = self.words.partition_point(|(known, _)| known.chars().next() < initial);
            let alike = self.words.iter().enumerate().skip(start);
            let alike = alike.take_while(|(_, (known, _))| known.chars().next() == initial);
            let near = alike.filter_map(|(at, (known, _))| match edit_distance(word, known, off)? {
                0 | 1 => Some((at, ONE_EDIT_WEIGHT)),
                _ => Some((at, TWO_EDITS_WEIGHT)),
            });
            similar = near.collect();
            similar.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            similar.truncate(MAX_SIMILAR_WORDS);
        }
        similar
    }

    /// Adds the score of one word to each skill that has it; of several variants of one word, the best counts.
    fn add_gains(&self, at: usize, share: f32, gains: &mut [SkillGain], having: &mut Vec<usize>) {
        let Some((_, postings)) = self.words.get(at) else { return };
        let rarity = self.rarity(postings.len());
        for WordPosting { place, weight } in postings {
            let place = *place as usize;
            let length = self.lengths.get(place).copied().unwrap_or(1.0);
            let damped = weight + BM25_SATURATION * (1.0 - BM25_LENGTH + BM25_LENGTH * length);
            let gain = share * rarity * weight * (BM25_SATURATION + 1.0) / damped;
            if let Some(known) = gains.get_mut(place) {
                if known.current == 0.0 {
                    having.push(place);
                }
                known.current = known.current.max(gain);
            }
        }
    }
}

/// Visits every text of a skill with its weight.
fn fields(agent: &Agent, skill: &Skill, visit: &mut impl FnMut(&str, f32)) {
    visit(skill.id.as_str(), NAME_WEIGHT);
    if skill.name != skill.id.as_str() {
        visit(&skill.name, NAME_WEIGHT);
    }
    for tag in &skill.tags {
        visit(tag, TAG_WEIGHT);
    }
    visit(&agent.slug, AGENT_WEIGHT);
    visit(&agent.card.name, AGENT_WEIGHT);
    visit(&skill.description, DESCRIPTION_WEIGHT);
    for example in &skill.examples {
        visit(example, EXAMPLE_WEIGHT);
    }
}

fn word_number(
    numbers: &mut FastMap<Box<str>, u32>,
    postings: &mut Vec<Vec<WordPosting>>,
    word: &str,
) -> u32 {
    if let Some(number) = numbers.get(word) {
        return *number;
    }
    let number = u32::try_from(postings.len()).unwrap_or(u32::MAX);
    numbers.insert(word.into(), number);
    postings.push(Vec::new());
    number
}

fn take_postings(postings: &mut [Vec<WordPosting>], at: u32) -> Vec<WordPosting> {
    postings.get_mut(at as usize).map(std::mem::take).unwrap_or_default()
}

fn normalize_lengths(mut lengths: Vec<f32>) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "an average need not be exact")]
    let average = lengths.iter().sum::<f32>() / lengths.len().max(1) as f32;
    for length in &mut lengths {
        *length /= average.max(1.0);
    }
    lengths
}

/// Visits each word of a text: lower case, split at case changes and separators (`getUserInfo`, `get_user_info`), without a plural `s`.
fn each_word(text: &str, word: &mut String, visit: &mut impl FnMut(&str)) {
    word.clear();
    let mut was_lower = false;
    for c in text.chars().chain([' ']) {
        // Most texts are plain, and there are many to be read.
        let is_plain = c.is_ascii();
        let is_letter = if is_plain { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() };
        let is_upper = if is_plain { c.is_ascii_uppercase() } else { c.is_uppercase() };
        if !is_letter || (is_upper && was_lower) {
            if !word.is_empty() {
                visit(stem(word));
                word.clear();
            }
            if !is_letter {
                was_lower = false;
                continue;
            }
        }
        was_lower = if is_plain { !is_upper } else { c.is_lowercase() || c.is_numeric() };
        if word.len() < MAX_WORD_LENGTH {
            if is_plain {
                word.push(c.to_ascii_lowercase());
            } else {
                word.extend(c.to_lowercase());
            }
        }
    }
}

fn stem(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(one) if one.len() >= MIN_WORD_LENGTH && !one.ends_with(['s', 'u', 'i']) => one,
        _ => word,
    }
}

/// Edit distance of two texts, if it is not more than `far`.
pub fn edit_distance(one: &str, other: &str, far: usize) -> Option<usize> {
    if one.len().abs_diff(other.len()) > far {
        return None;
    }
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(other.bytes()) {
            let changed = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().filter(|distance| *distance <= far)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, &mut String::new(), &mut |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_fall_apart_into_their_words() {
        assert_eq!(words("getUserInfo"), ["get", "user", "info"]);
        assert_eq!(words("weather.get_forecasts, 2day!"), ["weather", "get", "forecast", "2day"]);
        assert_eq!(words("Status of glass; ÜBER"), ["status", "of", "glass", "über"]);
    }

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        assert_eq!(edit_distance("weather_forecast", "weather_forcast", 4), Some(1));
        assert_eq!(edit_distance("abc", "abc", 1), Some(0));
        assert_eq!(edit_distance("kitten", "sitting", 3), Some(3));
        assert_eq!(edit_distance("deploy", "review", 2), None);
    }
}
