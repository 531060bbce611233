//! Comparing two JSON values by what they mean, not by how they are spelt.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap};

use rialto_model::json::RawJson;

use super::ComparisonOperator;
use crate::decimal;

pub(super) fn compare_values(left: RawJson<'_>, comparison: ComparisonOperator, right: RawJson<'_>) -> bool {
    let order = order_of(left, right);
    match comparison {
        ComparisonOperator::Equal => are_equal(left, right),
        ComparisonOperator::Unequal => !are_equal(left, right),
        ComparisonOperator::Less => order == Some(Ordering::Less),
        ComparisonOperator::Greater => order == Some(Ordering::Greater),
        ComparisonOperator::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        ComparisonOperator::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        ComparisonOperator::In => contains_value(left, right),
    }
}

/// An item of a list, a name in an object, or a part of a string.
fn contains_value(left: RawJson<'_>, right: RawJson<'_>) -> bool {
    if let Some(items) = right.items() {
        return items.into_iter().any(|item| are_equal(left, item));
    }
    let Some(left) = string(left) else { return false };
    match (right.members(), string(right)) {
        (Some(members), _) => members.iter().any(|(name, _)| *name == left),
        (None, Some(right)) => right.contains(&*left),
        (None, None) => false,
    }
}

fn are_equal(left: RawJson<'_>, right: RawJson<'_>) -> bool {
    if left.get() == right.get() {
        return true;
    }
    if let (Some(left), Some(right)) = (left.items(), right.items()) {
        return left.len() == right.len()
            && left.into_iter().zip(right).all(|(left, right)| are_equal(left, right));
    }
    if let (Some(left), Some(right)) = (left.members(), right.members()) {
        let (left, right): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (left.into_iter().collect(), right.into_iter().collect());
        let is_same = |name, value| right.get(name).is_some_and(|other| are_equal(value, *other));
        return left.len() == right.len() && left.iter().all(|(name, value)| is_same(name, *value));
    }
    order_of(left, right) == Some(Ordering::Equal)
}

/// Order of two numbers or two strings.
fn order_of(left: RawJson<'_>, right: RawJson<'_>) -> Option<Ordering> {
    if is_number(left) && is_number(right) {
        return Some(decimal::compare(left.get(), right.get()));
    }
    Some(string(left)?.cmp(&string(right)?))
}

fn is_number(value: RawJson<'_>) -> bool {
    value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

fn string(value: RawJson<'_>) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(value.get()).ok().map(Cow::Owned)
    } else {
        Some(inner.into())
    }
}
