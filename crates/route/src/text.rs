//! Finds skills by what they are about.
//!
//! An index is made once and never changes. Words are ranked by BM25 over weighted fields: what stands in a name
//! says more than what stands in a description. A word that nobody has used stands for those that begin with it, or that are
//! one or two letters away. The same question has the same answer, in the same order, and an answer says what it is made of.

use rialto_model::{agent::Agent, card::Skill, maps::FastMap};

/// How much a word counts, by where it stands.
const NAME: f32 = 3.0;
const TAG: f32 = 2.0;
const AGENT: f32 = 1.5;
const DESCRIPTION: f32 = 1.0;
const EXAMPLE: f32 = 0.5;

/// BM25's own numbers: how soon a word that is repeated stops counting, and how much long texts are held against a skill.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.4;

/// What a word counts that was not meant literally: one that begins so, one letter away, two letters away.
const BEGINNING: f32 = 0.8;
const ONE_OFF: f32 = 0.6;
const TWO_OFF: f32 = 0.4;

/// So many words of a question are looked at, and so many words of the index stand for one that is not in it.
const MOST_WORDS: usize = 32;
const STAND_INS: usize = 16;

/// Words shorter than this are taken literally.
const SHORTEST: usize = 3;

/// Longer words are cut: nobody types them.
const LONGEST: usize = 40;

/// What skills are about, each by its place in the order they were read.
pub struct TextIndex {
    /// All words, in order, each with the skills that have it.
    words: Vec<(Box<str>, Vec<Posting>)>,
    places: FastMap<Box<str>, u32>,
    /// How many words each skill has, against the average.
    lengths: Vec<f32>,
}

/// Reads skills one after the other.
#[derive(Default)]
pub struct Reader {
    numbers: FastMap<Box<str>, u32>,
    postings: Vec<Vec<Posting>>,
    lengths: Vec<f32>,
    word: String,
}

/// A word in a skill.
#[derive(Clone, Copy)]
struct Posting {
    place: u32,
    weight: f32,
}

/// What the words of a question say about one skill.
#[derive(Clone, Copy, Default)]
struct Gain {
    sum: f32,
    words: u32,
    now: f32,
}

/// A skill that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its place.
    pub place: usize,
    /// How well it fits; only worth comparing within one answer.
    pub score: f32,
    /// How many of the words it has.
    pub matched: usize,
}

/// What a question says about every skill that has any of its words.
pub struct Overlaps {
    gains: Vec<Gain>,
    places: Vec<usize>,
    /// How many different words the question has.
    count: usize,
    /// What a skill gains that has all of the words the index knows, each once.
    most: f32,
}

// === impl Reader ===

impl Reader {
    /// Reads one skill of an agent.
    pub fn read(&mut self, agent: &Agent, skill: &Skill) {
        let place = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        let mut length = 0.0_f32;
        let (numbers, postings) = (&mut self.numbers, &mut self.postings);
        let word = &mut self.word;
        fields(agent, skill, &mut |text, weight| {
            each_word(text, word, &mut |word| {
                length += 1.0;
                let number = number_of(numbers, postings, word);
                let Some(list) = postings.get_mut(number as usize) else { return };
                match list.last_mut() {
                    // It has stood there before.
                    Some(last) if last.place == place => last.weight += weight,
                    _ => list.push(Posting { place, weight }),
                }
            });
        });
        self.lengths.push(length);
    }

    /// The index of all that was read.
    pub fn finish(self) -> TextIndex {
        let mut postings = self.postings;
        let mut words: Vec<(Box<str>, Vec<Posting>)> =
            self.numbers.into_iter().map(|(word, at)| (word, take(&mut postings, at))).collect();
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let places = (0..).zip(&words).map(|(at, (word, _))| (word.clone(), at)).collect();
        TextIndex { words, places, lengths: against_average(self.lengths) }
    }
}

// === impl Overlaps ===

impl Overlaps {
    /// The places of the skills that have any of the words.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// How many different words were asked for.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// How many of the words a skill has.
    pub fn matched(&self, place: usize) -> usize {
        self.gains.get(place).map_or(0, |gain| gain.words as usize)
    }

    /// How much of the question a skill is about, from 0 to 1. Rare words count more than common ones.
    pub fn share(&self, place: usize) -> f64 {
        let Some(gain) = self.gains.get(place).filter(|gain| gain.words > 0 && self.most > 0.0) else {
            return 0.0;
        };
        f64::from((gain.sum / self.most).min(1.0) * self.weight_of(*gain))
    }

    /// Who has all words goes before who has one of them often.
    fn weight_of(&self, gain: Gain) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "both are small")]
        let share = gain.words as f32 / self.count.max(1) as f32;
        0.5 + 0.5 * share
    }
}

// === impl TextIndex ===

impl TextIndex {
    /// The skills that fit a question, best first.
    pub fn find(&self, question: &str) -> Vec<Hit> {
        let overlaps = self.overlaps(question, usize::MAX);
        let hit = |place: &usize| {
            let gain = overlaps.gains.get(*place)?;
            let score = gain.sum * overlaps.weight_of(*gain);
            Some(Hit { place: *place, score, matched: gain.words as usize })
        };
        let mut hits: Vec<Hit> = overlaps.places.iter().filter_map(hit).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        hits
    }

    /// What a question says about each skill. At most about so many occurrences of its words are looked at: then the most
    /// common words, which tell the least, are passed over.
    pub fn overlaps(&self, question: &str, budget: usize) -> Overlaps {
        let mut wanted: Vec<String> = Vec::new();
        each_word(question, &mut String::new(), &mut |word| {
            if wanted.len() < MOST_WORDS && !wanted.iter().any(|known| known == word) {
                wanted.push(word.to_owned());
            }
        });
        let mut meant: Vec<_> = wanted.iter().map(|word| self.meant(word)).collect();
        if budget < usize::MAX {
            self.keep_within(budget, &mut meant);
        }
        let most = meant.iter().map(|stands_for| self.most_of(stands_for)).sum();
        // By place: what it has gained in all, by how many words, and by the word that is looked at.
        let mut gains = vec![Gain::default(); self.lengths.len()];
        let (mut having, mut places) = (Vec::new(), Vec::new());
        for stands_for in &meant {
            for (at, share) in stands_for {
                self.weigh(*at, *share, &mut gains, &mut having);
            }
            for place in having.drain(..) {
                let Some(gain) = gains.get_mut(place) else { continue };
                if gain.words == 0 {
                    places.push(place);
                }
                *gain = Gain { sum: gain.sum + gain.now, words: gain.words + 1, now: 0.0 };
            }
        }
        Overlaps { gains, places, count: wanted.len(), most }
    }

    /// Passes over the most common words until the rest is within a budget; the rarest stays whatever it costs.
    fn keep_within(&self, budget: usize, meant: &mut Vec<Vec<(usize, f32)>>) {
        let cost = |stands_for: &Vec<(usize, f32)>| -> usize {
            stands_for.iter().filter_map(|(at, _)| self.words.get(*at)).map(|(_, list)| list.len()).sum()
        };
        meant.retain(|stands_for| !stands_for.is_empty());
        meant.sort_by_key(cost);
        let mut spent = 0_usize;
        let mut is_first = true;
        meant.retain(|stands_for| {
            spent = spent.saturating_add(cost(stands_for));
            std::mem::take(&mut is_first) || spent <= budget
        });
    }

    /// What a word counts for a skill of middling length that has it once.
    fn most_of(&self, stands_for: &[(usize, f32)]) -> f32 {
        let counts = stands_for
            .iter()
            .filter_map(|(at, share)| Some(share * self.rarity(self.words.get(*at)?.1.len())));
        counts.fold(0.0, f32::max)
    }

    fn rarity(&self, some: usize) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a rarity need not be exact")]
        let (all, some) = (self.lengths.len() as f32, some as f32);
        (1.0 + (all - some + 0.5) / (some + 0.5)).ln()
    }

    /// The words of the index that a word stands for, and how much each counts.
    fn meant(&self, word: &str) -> Vec<(usize, f32)> {
        if let Some(at) = self.places.get(word) {
            return vec![(*at as usize, 1.0)];
        }
        if word.len() < SHORTEST {
            return Vec::new();
        }
        let first = self.words.partition_point(|(known, _)| &**known < word);
        let begin = |(_, (known, _)): &(usize, &(Box<str>, Vec<Posting>))| known.starts_with(word);
        let beginning = self.words.iter().enumerate().skip(first).take_while(begin);
        let mut meant: Vec<(usize, f32)> = beginning.take(STAND_INS).map(|(at, _)| (at, BEGINNING)).collect();
        let off = if word.len() >= 8 { 2 } else { usize::from(word.len() >= 4) };
        if meant.is_empty() && off > 0 {
            let initial = word.chars().next();
            let start = self.words.partition_point(|(known, _)| known.chars().next() < initial);
            let alike = self.words.iter().enumerate().skip(start);
            let alike = alike.take_while(|(_, (known, _))| known.chars().next() == initial);
            let near = alike.filter_map(|(at, (known, _))| match distance(word, known, off)? {
                0 | 1 => Some((at, ONE_OFF)),
                _ => Some((at, TWO_OFF)),
            });
            meant = near.collect();
            meant.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            meant.truncate(STAND_INS);
        }
        meant
    }

    /// Adds what one word says about each skill that has it; of several words for the same one, the best counts.
    fn weigh(&self, at: usize, share: f32, gains: &mut [Gain], having: &mut Vec<usize>) {
        let Some((_, postings)) = self.words.get(at) else { return };
        let rarity = self.rarity(postings.len());
        for Posting { place, weight } in postings {
            let place = *place as usize;
            let length = self.lengths.get(place).copied().unwrap_or(1.0);
            let damped = weight + SATURATION * (1.0 - LENGTH + LENGTH * length);
            let gain = share * rarity * weight * (SATURATION + 1.0) / damped;
            if let Some(known) = gains.get_mut(place) {
                if known.now == 0.0 {
                    having.push(place);
                }
                known.now = known.now.max(gain);
            }
        }
    }
}

/// Tells every text of a skill and how much its words count.
fn fields(agent: &Agent, skill: &Skill, tell: &mut impl FnMut(&str, f32)) {
    tell(skill.id.as_str(), NAME);
    if skill.name != skill.id.as_str() {
        tell(&skill.name, NAME);
    }
    for tag in &skill.tags {
        tell(tag, TAG);
    }
    tell(&agent.slug, AGENT);
    tell(&agent.card.name, AGENT);
    tell(&skill.description, DESCRIPTION);
    for example in &skill.examples {
        tell(example, EXAMPLE);
    }
}

fn number_of(numbers: &mut FastMap<Box<str>, u32>, postings: &mut Vec<Vec<Posting>>, word: &str) -> u32 {
    if let Some(number) = numbers.get(word) {
        return *number;
    }
    let number = u32::try_from(postings.len()).unwrap_or(u32::MAX);
    numbers.insert(word.into(), number);
    postings.push(Vec::new());
    number
}

fn take(postings: &mut [Vec<Posting>], at: u32) -> Vec<Posting> {
    postings.get_mut(at as usize).map(std::mem::take).unwrap_or_default()
}

fn against_average(mut lengths: Vec<f32>) -> Vec<f32> {
    #[expect(clippy::cast_precision_loss, reason = "an average need not be exact")]
    let average = lengths.iter().sum::<f32>() / lengths.len().max(1) as f32;
    for length in &mut lengths {
        *length /= average.max(1.0);
    }
    lengths
}

/// Tells each word of a text: lower case, split where a name is put together (`getUserInfo`, `get_user_info`), without a plural
/// `s`.
fn each_word(text: &str, word: &mut String, tell: &mut impl FnMut(&str)) {
    word.clear();
    let mut was_lower = false;
    for c in text.chars().chain([' ']) {
        // Most texts are plain, and there are many to be read.
        let is_plain = c.is_ascii();
        let is_letter = if is_plain { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() };
        let is_upper = if is_plain { c.is_ascii_uppercase() } else { c.is_uppercase() };
        if !is_letter || (is_upper && was_lower) {
            if !word.is_empty() {
                tell(stem(word));
                word.clear();
            }
            if !is_letter {
                was_lower = false;
                continue;
            }
        }
        was_lower = if is_plain { !is_upper } else { c.is_lowercase() || c.is_numeric() };
        if word.len() < LONGEST {
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
        Some(one) if one.len() >= SHORTEST && !one.ends_with(['s', 'u', 'i']) => one,
        _ => word,
    }
}

/// How many letters must change to make one text of the other, if not more than `far`.
pub fn distance(one: &str, other: &str, far: usize) -> Option<usize> {
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
        assert_eq!(distance("weather_forecast", "weather_forcast", 4), Some(1));
        assert_eq!(distance("abc", "abc", 1), Some(0));
        assert_eq!(distance("kitten", "sitting", 3), Some(3));
        assert_eq!(distance("deploy", "review", 2), None);
    }
}
