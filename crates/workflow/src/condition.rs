//! Questions with two answers: `{{ nodes.review.output.score }} >= 0.8 and {{ $input.kind }} in ["bug", "crash"]`.
//!
//! Every question has an answer. What is not there counts as null, what cannot be compared is neither equal nor in order, and nothing
//! fails: `exists` tests that a value is present.

mod compare;
mod parse;

use rialto_model::json::Json;

use crate::reference::{ReferenceExpression, RootLookup, SyntaxError, ValueReference};

/// A question about what is known while a workflow runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    text: String,
    test: ConditionTest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ConditionTest {
    /// True if the value is `true`.
    Is(ConditionOperand),
    Exists(ReferenceExpression),
    Compare(ConditionOperand, ComparisonOperator, ConditionOperand),
    Not(Box<ConditionTest>),
    All(Vec<ConditionTest>),
    Any(Vec<ConditionTest>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ConditionOperand {
    Found(ReferenceExpression),
    Fixed(Json),
    List(Vec<ConditionOperand>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparisonOperator {
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
        parse::parse_test(text).map(|test| Self { text: text.trim().to_owned(), test })
    }

    /// Condition with a constant answer.
    pub fn constant(answer: bool) -> Self {
        let answer = Json::encode(&answer);
        Self { text: answer.get().to_owned(), test: ConditionTest::Is(ConditionOperand::Fixed(answer)) }
    }

    /// Evaluates the condition.
    pub fn is_true(&self, lookup: &RootLookup<'_>) -> bool {
        self.test.is_true(lookup)
    }

    /// Source text of the condition.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// References in the condition.
    pub fn references(&self) -> Vec<&ValueReference> {
        let mut found = Vec::new();
        self.test.collect(&mut found);
        found
    }
}

// === impl ConditionTest ===

impl ConditionTest {
    fn is_true(&self, lookup: &RootLookup<'_>) -> bool {
        match self {
            Self::Is(operand) => operand.value(lookup).get() == "true",
            Self::Exists(expression) => expression.resolve(lookup).is_ok_and(|found| !found.is_null()),
            Self::Compare(left, comparison, right) => {
                compare::compare_values(left.value(lookup).raw(), *comparison, right.value(lookup).raw())
            }
            Self::Not(test) => !test.is_true(lookup),
            Self::All(tests) => tests.iter().all(|test| test.is_true(lookup)),
            Self::Any(tests) => tests.iter().any(|test| test.is_true(lookup)),
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a ValueReference>) {
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

// === impl ConditionOperand ===

impl ConditionOperand {
    fn value(&self, lookup: &RootLookup<'_>) -> Json {
        match self {
            Self::Found(expression) => expression.resolve(lookup).unwrap_or_else(|_| Json::null()),
            Self::Fixed(value) => value.clone(),
            Self::List(items) => {
                Json::encode(&items.iter().map(|item| item.value(lookup)).collect::<Vec<_>>())
            }
        }
    }

    fn collect<'a>(&'a self, found: &mut Vec<&'a ValueReference>) {
        match self {
            Self::Found(expression) => found.extend(expression.references()),
            Self::Fixed(_) => {}
            Self::List(items) => items.iter().for_each(|item| item.collect(found)),
        }
    }
}

#[cfg(test)]
mod tests;
