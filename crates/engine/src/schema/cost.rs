//! Cost of a schema: an upper bound of how many subschemas a validator evaluates.
//!
//! Schemas come from agents. References let a schema of a few kilobytes expand to more evaluations than will ever end: 40 definitions
//! of which each refers twice to the next are 2^40 of them. So a schema is measured before it is used, in time linear in its size:
//! references are edges of a graph, and the cost of a node for an argument that is `depth` levels deep is computed once.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A schema with more text than this is not used.
pub(super) const MAX_SCHEMA_BYTES: usize = 512 * 1024;
/// A schema with more subschemas than this is not used.
const MAX_SUBSCHEMAS: usize = 10_000;
/// Subschemas may lie this deep inside each other.
const MAX_NESTING: usize = 100;
/// A schema that takes more evaluations than this for an argument of [`PLAIN_DEPTH`] levels is not used.
const MAX_EVALUATIONS: u64 = 100_000;
/// A schema with more regular expressions than this is not used.
const MAX_PATTERNS: usize = 100;
/// Depth of arguments that a usable schema must have a bounded cost for.
const PLAIN_DEPTH: usize = 4;
/// Arguments that are deeper than this are counted as this deep.
const MAX_DEPTH: usize = 32;
/// Evaluations that a reference to a schema of json-schema.org itself counts for.
const META_SCHEMA: u64 = 100;

/// Keywords whose subschemas are applied to the same value.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_SEVERAL: [&str; 5] = ["allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keywords whose subschemas are applied to what lies inside the value.
const INSIDE: [&str; 8] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "contains",
    "unevaluatedItems",
    "contentSchema",
];

/// Evaluations per path through an argument, by the argument's depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaCost(Vec<u64>);

/// One subschema.
#[derive(Default)]
struct SchemaNode {
    /// Subschemas that are applied to the same value.
    in_place: Vec<usize>,
    /// Subschemas of which one is applied to each member: those of `properties` and `prefixItems`.
    one_of: Vec<usize>,
    /// Subschemas that are applied to every member.
    each: Vec<usize>,
    /// Evaluations beside those of subschemas.
    own: u64,
    /// Evaluates what stands beside it twice.
    is_unevaluated: bool,
}

struct SchemaGraph<'a> {
    root: &'a Value,
    root_id: &'a str,
    anchors: HashMap<&'a str, &'a Value>,
    known: HashMap<*const Value, usize>,
    nodes: Vec<SchemaNode>,
    patterns: usize,
}

// === impl SchemaCost ===

impl SchemaCost {
    /// Measures a schema; fails with the reason if it must not be used.
    pub(crate) fn measure(schema: &Value) -> Result<Self, String> {
        let root_id = schema.get("$id").and_then(Value::as_str).unwrap_or_default();
        let mut graph = SchemaGraph {
            root: schema,
            root_id: root_id.strip_suffix('#').unwrap_or(root_id),
            anchors: HashMap::new(),
            known: HashMap::new(),
            nodes: Vec::new(),
            patterns: 0,
        };
        graph.find_anchors(schema, 0)?;
        let root = graph.add(schema, 0)?;
        let order = graph.in_place_order()?;
        let cost = graph.costs(root, &order);
        let plain = cost.get(PLAIN_DEPTH).copied().unwrap_or(u64::MAX);
        if plain > MAX_EVALUATIONS {
            return Err(format!(
                "checking an argument with it takes more than {MAX_EVALUATIONS} evaluations of subschemas"
            ));
        }
        Ok(Self(cost))
    }

    /// Upper bound of the evaluations for an argument with so many values, so deep inside each other.
    pub(super) fn evaluations(&self, values: u64, depth: usize) -> u64 {
        let path = self.0.get(depth).or(self.0.last()).copied().unwrap_or(u64::MAX);
        path.saturating_mul(values)
    }
}

// === impl Graph ===

impl<'a> SchemaGraph<'a> {
    /// Finds names that references can use. A schema inside the schema (`$id`) has references of its own, which are not followed.
    fn find_anchors(&mut self, value: &'a Value, depth: usize) -> Result<(), String> {
        if depth > MAX_NESTING {
            return Err(format!("its subschemas lie more than {MAX_NESTING} levels deep"));
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.find_anchors(item, depth + 1)),
            Value::Object(members) => {
                if depth > 0 && members.get("$id").is_some_and(Value::is_string) && has_reference(members) {
                    return Err("a schema inside it has an $id and references of its own".to_owned());
                }
                for name in ["$anchor", "$dynamicAnchor"] {
                    if let Some(anchor) = members.get(name).and_then(Value::as_str) {
                        self.anchors.insert(anchor, value);
                    }
                }
                members.values().try_for_each(|member| self.find_anchors(member, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, schema: &'a Value, depth: usize) -> Result<usize, String> {
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            return Ok(*known);
        }
        let number = self.nodes.len();
        if number >= MAX_SUBSCHEMAS {
            return Err(format!("it has more than {MAX_SUBSCHEMAS} subschemas"));
        }
        // A chain of references is as deep as it is long.
        if depth > MAX_SUBSCHEMAS.min(512) {
            return Err("its references form a chain of more than 512".to_owned());
        }
        self.known.insert(std::ptr::from_ref(schema), number);
        self.nodes.push(SchemaNode::default());
        let Some(members) = schema.as_object() else { return Ok(number) };
        let mut node = SchemaNode { own: 1, ..SchemaNode::default() };
        for (name, value) in members {
            self.add_keyword(&mut node, name, value, depth + 1)?;
        }
        if let Some(place) = self.nodes.get_mut(number) {
            *place = node;
        }
        Ok(number)
    }

    fn add_keyword(
        &mut self,
        node: &mut SchemaNode,
        name: &str,
        value: &'a Value,
        depth: usize,
    ) -> Result<(), String> {
        if REFERENCES.contains(&name) {
            if let Some(reference) = value.as_str() {
                match self.resolve(reference)? {
                    Some(target) => node.in_place.push(self.add(target, depth)?),
                    None => node.own += META_SCHEMA,
                }
            }
        } else if IN_PLACE.contains(&name) {
            node.in_place.push(self.add(value, depth)?);
        } else if IN_PLACE_SEVERAL.contains(&name) {
            self.add_all(&mut node.in_place, value, depth)?;
        } else if name == "properties" || name == "prefixItems" || (name == "items" && value.is_array()) {
            self.add_all(&mut node.one_of, value, depth)?;
        } else if name == "patternProperties" {
            self.patterns += value.as_object().map_or(0, Map::len);
            self.add_all(&mut node.each, value, depth)?;
        } else if INSIDE.contains(&name) {
            node.is_unevaluated |= name.starts_with("unevaluated");
            node.each.push(self.add(value, depth)?);
        } else if name == "pattern" {
            self.patterns += 1;
        } else if name == "enum" {
            node.own += value.as_array().map_or(0, |all| u64::try_from(all.len()).unwrap_or(u64::MAX)) / 16;
        }
        if self.patterns > MAX_PATTERNS {
            return Err(format!("it has more than {MAX_PATTERNS} regular expressions"));
        }
        Ok(())
    }

    fn add_all(&mut self, into: &mut Vec<usize>, schemas: &'a Value, depth: usize) -> Result<(), String> {
        let (list, map) = (schemas.as_array(), schemas.as_object());
        let all = list.into_iter().flatten().chain(map.into_iter().flat_map(Map::values));
        for schema in all {
            into.push(self.add(schema, depth)?);
        }
        Ok(())
    }

    /// The subschema that a reference names; none for a schema of json-schema.org.
    fn resolve(&self, reference: &'a str) -> Result<Option<&'a Value>, String> {
        let local = match reference.strip_prefix(self.root_id) {
            Some(rest) if rest.is_empty() || rest.starts_with('#') => rest,
            _ => reference,
        };
        let found = match local.strip_prefix('#') {
            None if local.is_empty() => Some(self.root),
            None if local.contains("://json-schema.org/") => return Ok(None),
            None => None,
            Some("") => Some(self.root),
            Some(pointer) if pointer.starts_with('/') => self.root.pointer(&percent_decoded(pointer)),
            Some(anchor) => self.anchors.get(anchor).copied(),
        };
        found.map(Some).ok_or_else(|| format!("its reference \"{reference}\" leads to nothing inside it"))
    }

    /// All subschemas, each behind those that are applied in its place.
    fn in_place_order(&self) -> Result<Vec<usize>, String> {
        let mut order = Vec::with_capacity(self.nodes.len());
        // 0: not seen, 1: under way, 2: done.
        let mut state = vec![0_u8; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((number, next)) = stack.pop() {
                if next == 0 {
                    match state.get(number) {
                        Some(2) => continue,
                        Some(1) => return Err("it refers to itself without end".to_owned()),
                        _ => set(&mut state, number, 1),
                    }
                }
                match self.nodes.get(number).and_then(|node| node.in_place.get(next)) {
                    Some(inner) => stack.extend([(number, next + 1), (*inner, 0)]),
                    None => {
                        set(&mut state, number, 2);
                        order.push(number);
                    }
                }
            }
        }
        Ok(order)
    }

    fn costs(&self, root: usize, order: &[usize]) -> Vec<u64> {
        let mut inside = vec![0_u64; self.nodes.len()];
        let mut costs = Vec::with_capacity(MAX_DEPTH + 1);
        for _ in 0..=MAX_DEPTH {
            let mut here = vec![0_u64; self.nodes.len()];
            for &number in order {
                let Some(node) = self.nodes.get(number) else { continue };
                let one = node.one_of.iter().map(|inner| at(&inside, *inner)).max().unwrap_or(0);
                let below = sum(&node.each, &inside).saturating_add(one);
                let in_place = sum(&node.in_place, &here).saturating_add(below);
                let all = in_place.saturating_mul(if node.is_unevaluated { 2 } else { 1 });
                if let Some(cost) = here.get_mut(number) {
                    *cost = all.saturating_add(node.own);
                }
            }
            costs.push(at(&here, root));
            inside = here;
        }
        costs
    }
}

fn has_reference(members: &Map<String, Value>) -> bool {
    members.iter().any(|(name, value)| {
        REFERENCES.contains(&name.as_str())
            || match value {
                Value::Object(members) => has_reference(members),
                Value::Array(items) => items.iter().filter_map(Value::as_object).any(has_reference),
                _ => false,
            }
    })
}

fn set(state: &mut [u8], number: usize, to: u8) {
    if let Some(place) = state.get_mut(number) {
        *place = to;
    }
}

fn at(costs: &[u64], number: usize) -> u64 {
    costs.get(number).copied().unwrap_or(0)
}

fn sum(numbers: &[usize], costs: &[u64]) -> u64 {
    numbers.iter().fold(0, |sum: u64, number| sum.saturating_add(at(costs, *number)))
}

/// A JSON pointer out of a fragment.
fn percent_decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn doubling(levels: usize, double: impl Fn(Value) -> Value) -> Value {
        let mut defs = Map::new();
        for level in 0..levels {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            defs.insert(format!("d{level}"), double(next));
        }
        defs.insert(format!("d{levels}"), json!({ "type": "object" }));
        json!({ "$ref": "#/$defs/d0", "$defs": defs })
    }

    #[test]
    fn definitions_that_double_are_too_much_and_few_of_them_are_not() {
        let twice = |next: Value| json!({ "allOf": [next, next] });
        assert!(SchemaCost::measure(&doubling(5, twice)).is_ok());
        let why = SchemaCost::measure(&doubling(40, twice)).unwrap_err();
        assert!(why.contains("100000 evaluations"), "{why}");
        for hidden in ["anyOf", "oneOf"] {
            assert!(SchemaCost::measure(&doubling(40, |next| json!({ hidden: [next, next] }))).is_err());
        }
        assert!(SchemaCost::measure(&doubling(40, |next| json!({ "if": next, "then": next }))).is_err());
        let anchored = json!({
            "$anchor": "a", "properties": { "x": { "allOf": [{ "$ref": "#a" }, { "$ref": "#a" }] } }
        });
        let cost = SchemaCost::measure(&anchored).unwrap();
        assert!(cost.evaluations(1, 30) > 1_000_000_000, "deep arguments are costly: {cost:?}");
        assert!(cost.evaluations(1, 3) < 100);
    }

    #[test]
    fn members_of_the_same_definition_cost_each_argument_once() {
        let pair = |next: Value| json!({ "properties": { "a": next, "b": next } });
        let cost = SchemaCost::measure(&doubling(40, pair)).unwrap();
        assert!(cost.evaluations(1, 32) < 200, "{cost:?}");
        let tree =
            json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" }, "value": {} } });
        assert!(SchemaCost::measure(&tree).unwrap().evaluations(1, 32) < 200);
    }

    #[test]
    fn references_that_never_end_or_lead_nowhere_are_refused() {
        let endless =
            json!({ "$defs": { "a": { "allOf": [{ "$ref": "#/$defs/a" }] } }, "$ref": "#/$defs/a" });
        assert!(SchemaCost::measure(&endless).unwrap_err().contains("without end"));
        assert!(SchemaCost::measure(&json!({ "$ref": "#/$defs/x" })).unwrap_err().contains("#/$defs/x"));
        let inner = json!({ "$defs": { "a": { "$id": "b", "$defs": { "c": {} }, "$ref": "#/$defs/c" } } });
        assert!(SchemaCost::measure(&inner).is_err());
    }

    #[test]
    fn ordinary_schemas_of_every_draft_are_measured() {
        let ordinary = [
            json!(true),
            json!({}),
            json!({ "$id": "https://a.example/s", "$ref": "https://a.example/s#/$defs/a%20b", "$defs": { "a b": {} } }),
            json!({ "definitions": { "a": { "type": "string" } }, "items": [{ "$ref": "#/definitions/a" }] }),
            json!({ "properties": { "schema": { "$ref": "http://json-schema.org/draft-07/schema#" } } }),
            json!({ "properties": { "$ref": { "type": "string" } } }),
            json!({ "dependencies": { "a": ["b"], "c": { "required": ["d"] } } }),
        ];
        for schema in ordinary {
            let cost = SchemaCost::measure(&schema).unwrap();
            assert!(cost.evaluations(1, 5) < 500, "{schema}");
        }
    }
}
