//! Parser of conditions.
//!
//! `or` binds less than `and`, `and` less than `not`, and that less than a comparison; parentheses bind most.

use super::{ComparisonOperator, ConditionOperand, ConditionTest};
use crate::reference::{ReferenceExpression, SyntaxError, TextCursor};

/// Questions may lie this deep inside each other.
const MAX_CONDITION_DEPTH: usize = 32;

const COMPARISONS: [(&str, ComparisonOperator); 6] = [
    ("==", ComparisonOperator::Equal),
    ("!=", ComparisonOperator::Unequal),
    ("<=", ComparisonOperator::AtMost),
    (">=", ComparisonOperator::AtLeast),
    ("<", ComparisonOperator::Less),
    (">", ComparisonOperator::Greater),
];

/// Reads a text, and counts how deep it is.
struct ConditionParser<'a> {
    cursor: TextCursor<'a>,
    depth: usize,
}

pub(super) fn parse_test(text: &str) -> Result<ConditionTest, SyntaxError> {
    let mut reader = ConditionParser { cursor: TextCursor::new(text), depth: 0 };
    let test = reader.parse_or()?;
    reader.cursor.skip_space();
    if reader.cursor.is_at_end() {
        Ok(test)
    } else {
        Err(reader.cursor.unexpected("\"and\", \"or\" or the end"))
    }
}

// === impl ConditionParser ===

impl ConditionParser<'_> {
    fn parse_or(&mut self) -> Result<ConditionTest, SyntaxError> {
        let first = self.parse_and()?;
        let mut tests = vec![first];
        while self.cursor.skip_word("or") {
            tests.push(self.parse_and()?);
        }
        Ok(single_or(tests, ConditionTest::Any))
    }

    fn parse_and(&mut self) -> Result<ConditionTest, SyntaxError> {
        let mut tests = vec![self.parse_nested()?];
        while self.cursor.skip_word("and") {
            tests.push(self.parse_nested()?);
        }
        Ok(single_or(tests, ConditionTest::All))
    }

    /// Parses a nested condition and limits the depth.
    fn parse_nested(&mut self) -> Result<ConditionTest, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_CONDITION_DEPTH {
            return Err(self.cursor.error_here("questions lie too deep inside each other"));
        }
        let test = self.parse_not();
        self.depth -= 1;
        test
    }

    fn parse_not(&mut self) -> Result<ConditionTest, SyntaxError> {
        if self.cursor.skip_word("not") {
            return Ok(ConditionTest::Not(Box::new(self.parse_nested()?)));
        }
        if self.cursor.skip_mark("(") {
            let test = self.parse_or()?;
            return if self.cursor.skip_mark(")") { Ok(test) } else { Err(self.cursor.unexpected("\")\"")) };
        }
        if self.cursor.skip_word("exists") {
            return match self.parse_operand(0)? {
                ConditionOperand::Found(expression) => Ok(ConditionTest::Exists(expression)),
                _ => Err(self.cursor.error_here(
                    "only a reference can be tested with exists, as in exists {{ $input.name }}",
                )),
            };
        }
        self.parse_comparison()
    }

    fn parse_comparison(&mut self) -> Result<ConditionTest, SyntaxError> {
        let left = self.parse_operand(0)?;
        let marked = COMPARISONS.into_iter().find(|(mark, _)| self.cursor.skip_mark(mark));
        if let Some((_, comparison)) = marked {
            return Ok(ConditionTest::Compare(left, comparison, self.parse_operand(0)?));
        }
        if self.cursor.skip_word("in") {
            return Ok(ConditionTest::Compare(left, ComparisonOperator::In, self.parse_operand(0)?));
        }
        if self.cursor.skip_word("not") {
            if !self.cursor.skip_word("in") {
                return Err(self.cursor.unexpected("\"in\" behind \"not\""));
            }
            let within = ConditionTest::Compare(left, ComparisonOperator::In, self.parse_operand(0)?);
            return Ok(ConditionTest::Not(Box::new(within)));
        }
        match left {
            ConditionOperand::Found(expression) if self.cursor.skip_word("exists") => {
                Ok(ConditionTest::Exists(expression))
            }
            left => Ok(ConditionTest::Is(left)),
        }
    }

    fn parse_operand(&mut self, depth: usize) -> Result<ConditionOperand, SyntaxError> {
        if self.cursor.skip_mark("{{") {
            let expression = ReferenceExpression::read(&mut self.cursor)?;
            return if self.cursor.skip_mark("}}") {
                Ok(ConditionOperand::Found(expression))
            } else {
                Err(self.cursor.unexpected("\"}}\""))
            };
        }
        if depth < MAX_CONDITION_DEPTH && self.cursor.skip_mark("[") {
            return self.parse_list(depth + 1);
        }
        let wanted = "{{ a reference }}, a string in quotes, a number, true, false, null or a list";
        self.cursor
            .parse_literal()?
            .map(ConditionOperand::Fixed)
            .ok_or_else(|| self.cursor.unexpected(wanted))
    }

    fn parse_list(&mut self, depth: usize) -> Result<ConditionOperand, SyntaxError> {
        let mut items = Vec::new();
        while !self.cursor.skip_mark("]") {
            if !items.is_empty() && !self.cursor.skip_mark(",") {
                return Err(self.cursor.unexpected("\",\" or \"]\""));
            }
            items.push(self.parse_operand(depth)?);
        }
        Ok(ConditionOperand::List(items))
    }
}

/// Combines conditions; a single one stays as it is.
fn single_or(mut tests: Vec<ConditionTest>, many: fn(Vec<ConditionTest>) -> ConditionTest) -> ConditionTest {
    match tests.pop() {
        Some(test) if tests.is_empty() => test,
        Some(last) => {
            tests.push(last);
            many(tests)
        }
        None => many(tests),
    }
}
