//! "Did you mean …?": the known word nearest to an unknown one.

/// The candidate that few changes make of `word`; none when all of them are something else.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    let most = max_distance(&word);
    let distances = candidates.into_iter().map(|candidate| (distance(&word, candidate), candidate));
    // Of equally near ones the first.
    distances
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// A third of the letters may be wrong, but not the only one.
fn max_distance(word: &[char]) -> usize {
    word.len().div_ceil(3).min(word.len().saturating_sub(1))
}

/// Letters that must be changed, put in, left out or swapped with their neighbour.
fn distance(word: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
    if word.len().abs_diff(candidate.len()) > max_distance(word) {
        return usize::MAX;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=candidate.len()).collect();
    for (row, letter) in word.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in candidate.iter().enumerate() {
            let changed = last[column] + usize::from(letter != other);
            let mut least = changed.min(last[column + 1] + 1).min(line[column] + 1);
            let is_swap =
                row > 0 && column > 0 && word[row - 1] == *other && *letter == candidate[column - 1];
            if is_swap {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut last, line);
    }
    last[candidate.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_word_and_another_word_finds_none() {
        let words = ["depends_on", "description", "timeout", "id"];
        for (slip, meant) in
            [("depend_on", "depends_on"), ("timeuot", "timeout"), ("Timeout", "timeout"), ("ids", "id")]
        {
            assert_eq!(nearest(slip, words), Some(meant));
        }
        for other in ["colour", "xy", "", "i"] {
            assert_eq!(nearest(other, words), None, "{other}");
        }
    }
}
