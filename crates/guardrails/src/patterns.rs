//! Patterns of an operator: linear in the text, and bounded in number and size.

use std::{borrow::Cow, ops::Range};

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use crate::{config::NamedPattern, ruleset::CompileError};

const MAX_PATTERNS: usize = 64;
const MAX_PATTERN_BYTES: usize = 1_000;
/// Maximum bytes of one compiled pattern.
const MAX_COMPILED_BYTES: usize = 1 << 20;

/// Compiled patterns. The set says in one pass which of them match.
pub(crate) struct CompiledPatterns {
    set: RegexSet,
    each: Vec<(String, Regex)>,
}

// === impl CompiledPatterns ===

impl CompiledPatterns {
    pub(crate) fn new(patterns: &[NamedPattern]) -> Result<Self, CompileError> {
        if patterns.is_empty() || patterns.len() > MAX_PATTERNS {
            let why = format!("a regex check has 1 to {MAX_PATTERNS} patterns, not {}", patterns.len());
            return Err(CompileError::Invalid(why));
        }
        let each = patterns.iter().map(compile_pattern).collect::<Result<Vec<_>, _>>()?;
        let set = RegexSetBuilder::new(patterns.iter().map(|pattern| &pattern.pattern))
            .size_limit(MAX_PATTERNS * MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_PATTERNS * MAX_COMPILED_BYTES)
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

fn compile_pattern(pattern: &NamedPattern) -> Result<(String, Regex), CompileError> {
    let invalid = |why: String| CompileError::Invalid(format!("regex pattern \"{}\": {why}", pattern.name));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if pattern.name.is_empty() || pattern.name.len() > 64 || !pattern.name.chars().all(is_plain) {
        return Err(invalid("its name must be 1 to 64 letters, digits, \"-\" and \"_\"".to_owned()));
    }
    if pattern.pattern.len() > MAX_PATTERN_BYTES {
        return Err(invalid(format!("it is longer than {MAX_PATTERN_BYTES} bytes")));
    }
    let built = RegexBuilder::new(&pattern.pattern)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build();
    Ok((pattern.name.clone(), built.map_err(|error| invalid(error.to_string()))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(name: &str, pattern: &str) -> Result<CompiledPatterns, CompileError> {
        CompiledPatterns::new(&[NamedPattern { name: name.to_owned(), pattern: pattern.to_owned() }])
    }

    #[test]
    fn matches_are_reported_by_name_and_range() {
        let mut found = Vec::new();
        compiled("ticket", r"T-\d+").unwrap().find("see T-12 and T-7", |name, at| found.push((name, at)));
        assert_eq!(found, [("ticket".into(), 4..8), ("ticket".into(), 13..16)]);
    }

    #[test]
    fn a_pattern_that_is_too_large_or_invalid_is_refused_by_name() {
        let why = |name: &str, pattern: &str| compiled(name, pattern).err().unwrap().to_string();
        assert!(why("big", r"(\w{900}){900}").contains("big"));
        assert!(why("open", "(").contains("open"));
        assert!(why("a b", "x").contains("its name"));
        assert!(why("long", &"x".repeat(1_001)).contains("longer"));
        assert!(CompiledPatterns::new(&[]).is_err());
    }
}
