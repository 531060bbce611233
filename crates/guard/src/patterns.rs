//! An operator's own patterns: linear in the text, and bounded in number and size.

use std::{borrow::Cow, ops::Range};

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use crate::{config::Pattern, guards::CompileError};

const MOST: usize = 64;
const LONGEST: usize = 1_000;
/// What one compiled pattern may take, in bytes.
const SIZE: usize = 1 << 20;

/// Patterns, put into shape. The set says in one pass which of them are worth a closer look.
pub(crate) struct Compiled {
    set: RegexSet,
    each: Vec<(String, Regex)>,
}

// === impl Compiled ===

impl Compiled {
    pub(crate) fn new(patterns: &[Pattern]) -> Result<Self, CompileError> {
        if patterns.is_empty() || patterns.len() > MOST {
            let why = format!("a regex check has 1 to {MOST} patterns, not {}", patterns.len());
            return Err(CompileError::Invalid(why));
        }
        let each = patterns.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let set = RegexSetBuilder::new(patterns.iter().map(|pattern| &pattern.pattern))
            .size_limit(MOST * SIZE)
            .dfa_size_limit(MOST * SIZE)
            .build()
            .map_err(|error| CompileError::Invalid(format!("the patterns of a regex check: {error}")))?;
        Ok(Self { set, each })
    }

    /// Every match, with its pattern's name.
    pub(crate) fn find(&self, text: &str, mut found: impl FnMut(Cow<'static, str>, Range<usize>)) {
        for n in &self.set.matches(text) {
            let Some((name, regex)) = self.each.get(n) else { continue };
            for hit in regex.find_iter(text).filter(|hit| !hit.is_empty()) {
                found(Cow::Owned(name.clone()), hit.range());
            }
        }
    }
}

fn one(pattern: &Pattern) -> Result<(String, Regex), CompileError> {
    let invalid = |why: String| CompileError::Invalid(format!("regex pattern \"{}\": {why}", pattern.name));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if pattern.name.is_empty() || pattern.name.len() > 64 || !pattern.name.chars().all(is_plain) {
        return Err(invalid("its name must be 1 to 64 letters, digits, \"-\" and \"_\"".to_owned()));
    }
    if pattern.pattern.len() > LONGEST {
        return Err(invalid(format!("it is longer than {LONGEST} bytes")));
    }
    let built = RegexBuilder::new(&pattern.pattern).size_limit(SIZE).dfa_size_limit(SIZE).build();
    Ok((pattern.name.clone(), built.map_err(|error| invalid(error.to_string()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(name: &str, pattern: &str) -> Result<Compiled, CompileError> {
        Compiled::new(&[Pattern { name: name.to_owned(), pattern: pattern.to_owned() }])
    }

    #[test]
    fn matches_are_told_by_name_and_place() {
        let mut found = Vec::new();
        compiled("ticket", r"T-\d+").unwrap().find("see T-12 and T-7", |name, at| found.push((name, at)));
        assert_eq!(found, [("ticket".into(), 4..8), ("ticket".into(), 13..16)]);
    }

    #[test]
    fn what_is_too_much_or_not_a_pattern_is_refused_with_its_name() {
        let why = |name: &str, pattern: &str| compiled(name, pattern).err().unwrap().to_string();
        assert!(why("big", r"(\w{900}){900}").contains("big"));
        assert!(why("open", "(").contains("open"));
        assert!(why("a b", "x").contains("its name"));
        assert!(why("long", &"x".repeat(1_001)).contains("longer"));
        assert!(Compiled::new(&[]).is_err());
    }
}
