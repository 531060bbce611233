//! How conditions are written.
//!
//! `or` binds less than `and`, `and` less than `not`, and that less than a comparison; parentheses bind most.

use super::{Comparison, Operand, Test};
use crate::reference::{Cursor, Expression, SyntaxError};

/// Questions may lie this deep inside each other.
const DEEPEST: usize = 32;

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

/// Reads a text, and counts how deep it is.
struct Reader<'a> {
    cursor: Cursor<'a>,
    depth: usize,
}

pub(super) fn test(text: &str) -> Result<Test, SyntaxError> {
    let mut reader = Reader { cursor: Cursor::new(text), depth: 0 };
    let test = reader.any()?;
    reader.cursor.skip_space();
    if reader.cursor.is_over() {
        Ok(test)
    } else {
        Err(reader.cursor.unexpected("\"and\", \"or\" or the end"))
    }
}

// === impl Reader ===

impl Reader<'_> {
    fn any(&mut self) -> Result<Test, SyntaxError> {
        let first = self.all()?;
        let mut tests = vec![first];
        while self.cursor.takes_word("or") {
            tests.push(self.all()?);
        }
        Ok(only(tests, Test::Any))
    }

    fn all(&mut self) -> Result<Test, SyntaxError> {
        let mut tests = vec![self.one()?];
        while self.cursor.takes_word("and") {
            tests.push(self.one()?);
        }
        Ok(only(tests, Test::All))
    }

    /// Everything inside of another question comes through here.
    fn one(&mut self) -> Result<Test, SyntaxError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.cursor.wrong("questions lie too deep inside each other"));
        }
        let test = self.negated();
        self.depth -= 1;
        test
    }

    fn negated(&mut self) -> Result<Test, SyntaxError> {
        if self.cursor.takes_word("not") {
            return Ok(Test::Not(Box::new(self.one()?)));
        }
        if self.cursor.takes("(") {
            let test = self.any()?;
            return if self.cursor.takes(")") { Ok(test) } else { Err(self.cursor.unexpected("\")\"")) };
        }
        if self.cursor.takes_word("exists") {
            return match self.operand(0)? {
                Operand::Found(expression) => Ok(Test::Exists(expression)),
                _ => Err(self
                    .cursor
                    .wrong("only a reference may exist or not, as in exists {{ $input.name }}")),
            };
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Test, SyntaxError> {
        let left = self.operand(0)?;
        let marked = COMPARISONS.into_iter().find(|(mark, _)| self.cursor.takes(mark));
        if let Some((_, comparison)) = marked {
            return Ok(Test::Compare(left, comparison, self.operand(0)?));
        }
        if self.cursor.takes_word("in") {
            return Ok(Test::Compare(left, Comparison::In, self.operand(0)?));
        }
        if self.cursor.takes_word("not") {
            if !self.cursor.takes_word("in") {
                return Err(self.cursor.unexpected("\"in\" behind \"not\""));
            }
            let within = Test::Compare(left, Comparison::In, self.operand(0)?);
            return Ok(Test::Not(Box::new(within)));
        }
        match left {
            Operand::Found(expression) if self.cursor.takes_word("exists") => Ok(Test::Exists(expression)),
            left => Ok(Test::Is(left)),
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, SyntaxError> {
        if self.cursor.takes("{{") {
            let expression = Expression::read(&mut self.cursor)?;
            return if self.cursor.takes("}}") {
                Ok(Operand::Found(expression))
            } else {
                Err(self.cursor.unexpected("\"}}\""))
            };
        }
        if depth < DEEPEST && self.cursor.takes("[") {
            return self.list(depth + 1);
        }
        let wanted = "{{ a reference }}, a string in quotes, a number, true, false, null or a list";
        self.cursor.literal()?.map(Operand::Fixed).ok_or_else(|| self.cursor.unexpected(wanted))
    }

    fn list(&mut self, depth: usize) -> Result<Operand, SyntaxError> {
        let mut items = Vec::new();
        while !self.cursor.takes("]") {
            if !items.is_empty() && !self.cursor.takes(",") {
                return Err(self.cursor.unexpected("\",\" or \"]\""));
            }
            items.push(self.operand(depth)?);
        }
        Ok(Operand::List(items))
    }
}

/// One question alone needs nothing around it.
fn only(mut tests: Vec<Test>, many: fn(Vec<Test>) -> Test) -> Test {
    match tests.pop() {
        Some(test) if tests.is_empty() => test,
        Some(last) => {
            tests.push(last);
            many(tests)
        }
        None => many(tests),
    }
}
