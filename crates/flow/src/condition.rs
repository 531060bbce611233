//! Questions with two answers: `{{ nodes.review.output.score }} >= 0.8 and {{ $input.kind }} in ["bug", "crash"]`.
//!
//! Every question has an answer. What is not there counts as null, what cannot be compared is neither equal nor in order, and nothing
//! fails: whether something is there is itself a question (`exists`).

mod compare;
mod parse;

use rialto_model::json::Json;

use crate::reference::{Expression, Lookup, Reference, SyntaxError};

/// A question about what is known while a workflow runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    text: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    /// Whether it is `true` itself.
    Is(Operand),
    Exists(Expression),
    Compare(Operand, Comparison, Operand),
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operand {
    Found(Expression),
    Fixed(Json),
    List(Vec<Operand>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
    In,
}

// === impl Condition ===

impl Condition {
    /// Reads a question.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        parse::test(text).map(|test| Self { text: text.trim().to_owned(), test })
    }

    /// One that always has the same answer.
    pub fn always(answer: bool) -> Self {
        let answer = Json::encode(&answer);
        Self { text: answer.get().to_owned(), test: Test::Is(Operand::Fixed(answer)) }
    }

    /// Whether it holds.
    pub fn holds(&self, lookup: &Lookup<'_>) -> bool {
        self.test.holds(lookup)
    }

    /// How it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it looks at.
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.test.collect(&mut found);
        found
    }
}

// === impl Test ===

impl Test {
    fn holds(&self, lookup: &Lookup<'_>) -> bool {
        match self {
            Self::Is(operand) => operand.value(lookup).get() == "true",
            Self::Exists(expression) => expression.find(lookup).is_ok_and(|found| !found.is_null()),
            Self::Compare(left, comparison, right) => {
                compare::holds(left.value(lookup).raw(), *comparison, right.value(lookup).raw())
            }
            Self::Not(test) => !test.holds(lookup),
            Self::All(tests) => tests.iter().all(|test| test.holds(lookup)),
            Self::Any(tests) => tests.iter().any(|test| test.holds(lookup)),
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Self::Is(operand) => operand.collect(found),
            Self::Exists(expression) => found.extend(expression.references()),
            Self::Compare(left, _, right) => {
                left.collect(found);
                right.collect(found);
            }
            Self::Not(test) => test.collect(found),
            Self::All(tests) | Self::Any(tests) => tests.iter().for_each(|test| test.collect(found)),
        }
    }
}

// === impl Operand ===

impl Operand {
    fn value(&self, lookup: &Lookup<'_>) -> Json {
        match self {
            Self::Found(expression) => expression.find(lookup).unwrap_or_else(|_| Json::null()),
            Self::Fixed(value) => value.clone(),
            Self::List(items) => {
                Json::encode(&items.iter().map(|item| item.value(lookup)).collect::<Vec<_>>())
            }
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Self::Found(expression) => found.extend(expression.references()),
            Self::Fixed(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.collect(found)),
        }
    }
}

#[cfg(test)]
mod tests;
