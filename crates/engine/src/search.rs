//! Finds skills by what they are about.
//!
//! An index is made of one directory and never changes. Words are ranked by BM25 over weighted fields: what stands in a name
//! says more than what stands in a description. A word that nobody has used stands for those that begin with it, or that are
//! one or two letters away. The same question has the same answer, in the same order, and an answer says what it is made of.

use std::sync::Arc;

use rialto_model::maps::FastMap;

use crate::directory::{Directory, Entry};

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

/// What skills are about.
pub struct Index {
    directory: Arc<Directory>,
    /// All words, in order, each with the skills that have it.
    words: Vec<(Box<str>, Vec<Posting>)>,
    places: FastMap<Box<str>, u32>,
    /// How many words each skill has, against the average.
    lengths: Vec<f32>,
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
    words: usize,
    now: f32,
}

/// A skill that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its place in the directory's list.
    pub place: usize,
    /// How well it fits; only worth comparing within one answer.
    pub score: f32,
    /// How many of the words it has.
    pub matched: usize,
}

// === impl Index ===

impl Index {
    /// Reads what all listed skills of a directory are about.
    pub fn of(directory: &Arc<Directory>) -> Self {
        let mut numbers: FastMap<Box<str>, u32> = FastMap::default();
        let mut postings: Vec<Vec<Posting>> = Vec::new();
        let mut lengths = Vec::with_capacity(directory.len());
        let mut own: Vec<(u32, f32)> = Vec::new();
        for (place, entry) in (0_u32..).zip(directory.listed()) {
            own.clear();
            let mut length = 0.0_f32;
            read(entry, &mut |word, weight| {
                length += 1.0;
                let number = number_of(&mut numbers, &mut postings, word);
                match own.iter_mut().find(|(known, _)| *known == number) {
                    Some((_, sum)) => *sum += weight,
                    None => own.push((number, weight)),
                }
            });
            for (number, weight) in &own {
                if let Some(list) = postings.get_mut(*number as usize) {
                    list.push(Posting { place, weight: *weight });
                }
            }
            lengths.push(length);
        }
        let mut words: Vec<(Box<str>, Vec<Posting>)> =
            numbers.into_iter().map(|(word, at)| (word, take(&mut postings, at))).collect();
        words.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let places = (0..).zip(&words).map(|(at, (word, _))| (word.clone(), at)).collect();
        Self { directory: Arc::clone(directory), words, places, lengths: against_average(lengths) }
    }

    /// What it was made of.
    pub const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The skills that fit a question, best first.
    pub fn find(&self, question: &str) -> Vec<Hit> {
        let mut wanted: Vec<String> = Vec::new();
        each_word(question, &mut |word| {
            if wanted.len() < MOST_WORDS && !wanted.iter().any(|known| known == word) {
                wanted.push(word.to_owned());
            }
        });
        // By place: what it has gained in all, by how many words, and by the word that is looked at.
        let mut gains = vec![Gain::default(); self.lengths.len()];
        let (mut having, mut places) = (Vec::new(), Vec::new());
        for word in &wanted {
            for (at, share) in self.meant(word) {
                self.weigh(at, share, &mut gains, &mut having);
            }
            for place in having.drain(..) {
                let Some(gain) = gains.get_mut(place) else { continue };
                if gain.words == 0 {
                    places.push(place);
                }
                *gain = Gain { sum: gain.sum + gain.now, words: gain.words + 1, now: 0.0 };
            }
        }
        let count = wanted.len().max(1);
        let hit = |place: usize| {
            let gain = gains.get(place)?;
            // Who has all words goes before who has one of them often.
            #[expect(clippy::cast_precision_loss, reason = "both are small")]
            let share = gain.words as f32 / count as f32;
            Some(Hit { place, score: gain.sum * (0.5 + 0.5 * share), matched: gain.words })
        };
        let mut hits: Vec<Hit> = places.into_iter().filter_map(hit).collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        hits
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
        #[expect(clippy::cast_precision_loss, reason = "a rarity need not be exact")]
        let (all, some) = (self.lengths.len() as f32, postings.len() as f32);
        let rarity = (1.0 + (all - some + 0.5) / (some + 0.5)).ln();
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

/// Tells every word of a skill and how much it counts.
fn read(entry: &Entry, tell: &mut impl FnMut(&str, f32)) {
    let (skill, card) = (&entry.skill, &entry.agent.card);
    each_word(skill.id.as_str(), &mut |word| tell(word, NAME));
    if skill.name != skill.id.as_str() {
        each_word(&skill.name, &mut |word| tell(word, NAME));
    }
    for tag in &skill.tags {
        each_word(tag, &mut |word| tell(word, TAG));
    }
    each_word(&entry.agent.slug, &mut |word| tell(word, AGENT));
    each_word(&card.name, &mut |word| tell(word, AGENT));
    each_word(&skill.description, &mut |word| tell(word, DESCRIPTION));
    for example in &skill.examples {
        each_word(example, &mut |word| tell(word, EXAMPLE));
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
fn each_word(text: &str, tell: &mut impl FnMut(&str)) {
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars().chain([' ']) {
        let is_inside = c.is_alphanumeric() && !(c.is_uppercase() && was_lower);
        if !is_inside {
            if !word.is_empty() {
                tell(stem(&word));
                word.clear();
            }
            if !c.is_alphanumeric() {
                was_lower = false;
                continue;
            }
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if word.len() < LONGEST {
            word.extend(c.to_lowercase());
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
    use rialto_model::{card::Skill, ids::Scope};
    use rialto_testkit::agents::{agent, skill};

    use super::*;

    fn about(id: &str, description: &str, tags: &[&str]) -> Skill {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Skill { description: description.to_owned(), tags, ..skill(id) }
    }

    fn index() -> Index {
        let weather = agent("Weather", vec![about("forecast", "The weather of the next days", &["city"])]);
        let ops = agent(
            "Ops",
            vec![
                about("deploy", "Puts a version of a site on its servers", &["release"]),
                about("rollback", "Goes back to the version before", &["release", "undo"]),
                about("status", "Tells about deployments, weather permitting", &[]),
            ],
        );
        let rows = [Arc::new(weather), Arc::new(ops)];
        Index::of(&Arc::new(Directory::build(1, &Scope::default(), rows.iter())))
    }

    fn found(index: &Index, question: &str) -> Vec<String> {
        let name = |hit: Hit| index.directory().at(hit.place).map(|entry| entry.canonical.clone());
        index.find(question).into_iter().filter_map(name).collect()
    }

    #[test]
    fn what_stands_in_a_name_counts_more_than_what_is_said_about_it() {
        let index = index();
        assert_eq!(found(&index, "weather"), ["weather.forecast", "ops.status"]);
        assert_eq!(found(&index, "release"), ["ops.rollback", "ops.deploy"], "the shorter one first");
        assert_eq!(found(&index, "undo a release"), ["ops.rollback", "ops.deploy"], "all words before one");
        assert_eq!(found(&index, ""), Vec::<String>::new());
        assert_eq!(found(&index, "!?"), Vec::<String>::new());
    }

    #[test]
    fn slips_and_beginnings_find_what_was_meant() {
        let index = index();
        assert_eq!(found(&index, "forcast"), ["weather.forecast"]);
        assert_eq!(found(&index, "wether")[..1], ["weather.forecast"]);
        assert_eq!(found(&index, "rollb"), ["ops.rollback"]);
        assert_eq!(found(&index, "versoin before")[..1], ["ops.rollback"]);
        assert_eq!(found(&index, "zz"), Vec::<String>::new());
    }

    #[test]
    fn the_same_question_has_the_same_answer() {
        let (one, other) = (index(), index());
        for question in ["weather", "release version", "status of the forecast"] {
            assert_eq!(one.find(question), other.find(question));
        }
    }

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, &mut |word| words.push(word.to_owned()));
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
