//! Checks arguments against a skill's own schema before anything leaves, and results where somebody has a schema for them.
//!
//! Schemas come from agents, so they are not trusted: each is measured before it is compiled ([`cost`]), regular expressions have a size
//! limit and run in linear time where they can, and an argument is checked only if that takes a bounded number of steps. Short checks
//! are done in place; long ones on a thread of their own, of which there are few. A schema that cannot be used checks nothing: it
//! protects the agent it came from, and that agent still sees the arguments.

pub(crate) mod cost;

use std::{collections::HashMap, sync::Arc};

use jsonschema::{PatternOptions, ValidationError, Validator};
use parking_lot::Mutex;
use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    ids::{AgentId, SkillId},
    json::Json,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use self::cost::{MAX_SCHEMA_BYTES, SchemaCost};

/// Compiled schemas are kept up to this many; then the memory is emptied and fills anew.
const REMEMBERED: usize = 4_096;
/// Checks that take no more evaluations than this are done in place: well below a millisecond.
const MAX_INLINE_EVALUATIONS: u64 = 10_000;
/// Checks that would take more evaluations than this are not done.
const MAX_EVALUATIONS: u64 = 20_000_000;
/// Schemas with more text than this are compiled on a thread of their own.
const MAX_INLINE_SCHEMA_BYTES: usize = 32 * 1024;
/// Long checks that are under way at once.
const LONG_CHECKS: usize = 2;
/// Limit of a compiled regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;
/// Steps that a regular expression with look-around, which does not run in linear time, may take.
const MAX_BACKTRACKS: usize = 10_000;

/// Compiles each skill's schema once per version of its card.
pub struct Schemas {
    compiled: Mutex<HashMap<(AgentId, SkillId), CompiledSchema>>,
    long_checks: Semaphore,
}

/// A schema's text, and what became of it; none when it cannot be used.
#[derive(Clone)]
struct CompiledSchema {
    text: Json,
    usable: Option<Arc<SchemaVerdict>>,
}

/// A schema that is ready to be checked with.
struct SchemaVerdict {
    validator: Validator,
    cost: SchemaCost,
}

// === impl Schemas ===

impl Default for Schemas {
    fn default() -> Self {
        Self { compiled: Mutex::default(), long_checks: Semaphore::new(LONG_CHECKS) }
    }
}

impl Schemas {
    /// Refuses arguments that the skill's schema does not allow, naming the first place that is wrong.
    pub(crate) async fn check(&self, target: &CallTarget, args: &Json) -> Result<(), Failure> {
        let Some(schema) = target.skill.as_ref().and_then(|skill| skill.input_schema.as_ref()) else {
            return Ok(());
        };
        let usable = match self.known(target, schema) {
            Some(usable) => usable,
            None if is_quickly_compiled(schema) => self.usable(target, schema),
            None => self.compile_aside(target, schema).await,
        };
        let Some(usable) = usable else { return Ok(()) };
        let evaluations = usable.evaluations(args);
        if evaluations <= MAX_INLINE_EVALUATIONS {
            return usable.check(args);
        }
        if evaluations > MAX_EVALUATIONS {
            warn_unchecked(target, evaluations);
            return Ok(());
        }
        // Nobody closes it.
        let _turn = self.long_checks.acquire().await;
        let args = args.clone();
        let checked = tokio::task::spawn_blocking(move || usable.check(&args)).await;
        checked.unwrap_or_else(|_| {
            Err(Failure::new(
                FailureKind::Internal,
                "the arguments could not be checked against the skill's schema",
            ))
        })
    }

    /// Whether arguments may fit, for choosing among skills: a check that would take long is left to the call.
    pub(crate) fn may_fit(&self, target: &CallTarget, args: &Json) -> bool {
        let schema = target.skill.as_ref().and_then(|skill| skill.input_schema.as_ref());
        let Some(usable) = schema.and_then(|schema| self.usable(target, schema)) else { return true };
        usable.evaluations(args) > MAX_INLINE_EVALUATIONS || usable.check(args).is_ok()
    }

    /// Why a value does not fit the schema that one of the target's skills has for it.
    pub fn check_value(&self, target: &CallTarget, schema: &Json, value: &Value) -> Result<(), String> {
        let Some(usable) = self.usable(target, schema) else { return Ok(()) };
        let (values, depth) = measure(value);
        let evaluations = usable.cost.evaluations(values, depth);
        if evaluations > MAX_EVALUATIONS {
            warn_unchecked(target, evaluations);
            return Ok(());
        }
        usable.validator.validate(value).map_err(|error| {
            let path = error.instance_path().to_string();
            if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
        })
    }

    /// A schema that was compiled before; the inner none says that it cannot be used.
    fn known(&self, target: &CallTarget, text: &Json) -> Option<Option<Arc<SchemaVerdict>>> {
        let skill = target.skill.as_ref()?;
        let compiled = self.compiled.lock();
        let known = compiled.get(&(target.agent.id.clone(), skill.id.clone()))?;
        // The same text at the same address: the row we compiled from still lives.
        let is_same = std::ptr::eq(known.text.get(), text.get()) || known.text == *text;
        is_same.then(|| known.usable.clone())
    }

    fn usable(&self, target: &CallTarget, text: &Json) -> Option<Arc<SchemaVerdict>> {
        self.known(target, text).unwrap_or_else(|| self.remember(target, text, compile(text)))
    }

    async fn compile_aside(&self, target: &CallTarget, text: &Json) -> Option<Arc<SchemaVerdict>> {
        let _turn = self.long_checks.acquire().await;
        let schema = text.clone();
        let compiled = tokio::task::spawn_blocking(move || compile(&schema)).await;
        self.remember(target, text, compiled.unwrap_or_else(|_| Err("it could not be compiled".to_owned())))
    }

    fn remember(
        &self,
        target: &CallTarget,
        text: &Json,
        compiled: Result<SchemaVerdict, String>,
    ) -> Option<Arc<SchemaVerdict>> {
        let skill = target.skill.as_ref()?;
        let usable = match compiled {
            Ok(usable) => Some(Arc::new(usable)),
            Err(why) => {
                tracing::warn!(
                    agent.id = %target.agent.id, skill.id = target.skill_id(),
                    "a schema of {} cannot be used, so nothing is checked with it: {why}", target.verb()
                );
                None
            }
        };
        let mut all = self.compiled.lock();
        if all.len() >= REMEMBERED {
            all.clear();
        }
        let key = (target.agent.id.clone(), skill.id.clone());
        all.insert(key, CompiledSchema { text: text.clone(), usable: usable.clone() });
        usable
    }
}

// === impl Usable ===

impl SchemaVerdict {
    fn evaluations(&self, args: &Json) -> u64 {
        let (values, depth) = measure_text(args.get());
        self.cost.evaluations(values, depth)
    }

    fn check(&self, args: &Json) -> Result<(), Failure> {
        let args = args.value();
        self.validator.validate(&args).map_err(|error| invalid(&error))
    }
}

/// Whether a schema can be used, or why it cannot.
pub fn is_schema(schema: &Json) -> Result<(), String> {
    compile(schema).map(drop)
}

/// Whether a schema is small and simple enough to be used, or why it is not. It need not be a valid one.
pub(crate) fn check_bounds(schema: &Json) -> Result<(), String> {
    if schema.get().len() > MAX_SCHEMA_BYTES {
        return Err(format!("it has {} bytes; {MAX_SCHEMA_BYTES} are allowed", schema.get().len()));
    }
    SchemaCost::measure(&schema.value()).map(drop)
}

/// Whether compiling a schema takes no time worth mentioning. Regular expressions may take tens of milliseconds each.
fn is_quickly_compiled(schema: &Json) -> bool {
    schema.get().len() <= MAX_INLINE_SCHEMA_BYTES && !schema.get().contains("\"pattern")
}

fn compile(text: &Json) -> Result<SchemaVerdict, String> {
    if text.get().len() > MAX_SCHEMA_BYTES {
        return Err(format!("it has {} bytes; {MAX_SCHEMA_BYTES} are allowed", text.get().len()));
    }
    let schema = text.value();
    let cost = SchemaCost::measure(&schema)?;
    let linear = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
    let compiled = jsonschema::options().with_pattern_options(linear).build(&schema).or_else(|_| {
        // Expressions with look-around need the other engine, which backtracks: it may do so only so often.
        let bounded = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKS)
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES);
        jsonschema::options().with_pattern_options(bounded).build(&schema)
    });
    compiled.map(|validator| SchemaVerdict { validator, cost }).map_err(|error| error.to_string())
}

fn invalid(error: &ValidationError<'_>) -> Failure {
    let path = error.instance_path().to_string();
    let place = if path.is_empty() { "the arguments".to_owned() } else { format!("arguments{path}") };
    let data =
        json!({ "path": path, "expected": error.to_string(), "schemaPath": error.schema_path().to_string() });
    Failure::new(FailureKind::Invalid, format!("{place}: {error}")).with_data(Json::encode(&data))
}

fn warn_unchecked(target: &CallTarget, evaluations: u64) {
    tracing::warn!(
        agent.id = %target.agent.id, skill.id = target.skill_id(),
        "arguments of {} were not checked: it could take {evaluations} evaluations of its schema", target.verb()
    );
}

/// Upper bounds of how many values a JSON text has, and how deep they lie inside each other.
fn measure_text(text: &str) -> (u64, usize) {
    let (mut values, mut depth, mut deepest, mut in_text, mut is_escaped) = (1_u64, 0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_text,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => {
                depth += 1;
                values += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => values += 1,
            _ => {}
        }
    }
    (values, deepest)
}

fn measure(value: &Value) -> (u64, usize) {
    let inside =
        |(values, depth): (u64, usize), (more, deep): (u64, usize)| (values + more, depth.max(deep + 1));
    match value {
        Value::Array(items) => items.iter().map(measure).fold((1, 0), inside),
        Value::Object(members) => members.values().map(measure).fold((1, 0), inside),
        _ => (1, 0),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rialto_model::card::Skill;

    use super::*;

    fn target(schema: &Value) -> CallTarget {
        let skill = Skill { input_schema: Some(Json::encode(schema)), ..rialto_testkit::agents::skill("s") };
        let agent = rialto_testkit::agents::agent("A", vec![skill.clone()]);
        CallTarget { agent: Arc::new(agent), skill: Some(Arc::new(skill)) }
    }

    #[test]
    fn values_and_depth_are_counted_in_text_as_in_a_tree() {
        for text in ["1", "[]", r#"{"a":[1,2,{"b":"{[,"}],"c\"":null}"#, r#"["\\",[[[]]]]"#] {
            let json = Json::parse(text).unwrap();
            let (values, depth) = measure_text(text);
            let (exact, deepest) = measure(&json.value());
            assert!(values >= exact && values <= 2 * exact + 1, "{text}: {values} and {exact}");
            assert!(depth == deepest || depth == deepest + 1, "{text}: {depth} and {deepest}");
        }
    }

    #[tokio::test]
    async fn a_schema_that_would_take_for_ever_checks_nothing_and_takes_no_time() {
        let mut defs = serde_json::Map::new();
        for level in 0..40 {
            let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
            defs.insert(format!("d{level}"), json!({ "allOf": [next, next] }));
        }
        defs.insert("d40".to_owned(), json!({ "type": "object" }));
        let target = target(&json!({ "$ref": "#/$defs/d0", "$defs": defs }));
        let begun = Instant::now();
        Schemas::default().check(&target, &Json::empty_object()).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_deep_argument_cannot_make_a_recursive_schema_explode() {
        let twice = json!({ "properties": { "a": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let (target, schemas) = (target(&twice), Schemas::default());
        let deep = Json::parse(format!("{}1{}", "{\"a\":".repeat(60), "}".repeat(60))).unwrap();
        let begun = Instant::now();
        schemas.check(&target, &deep).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn large_arguments_are_checked_too() {
        let list = json!({ "type": "object", "properties": { "n": { "items": { "type": "integer" } } } });
        let (target, schemas) = (target(&list), Schemas::default());
        let numbers: Vec<Value> = (0..50_000).map(Value::from).collect();
        schemas.check(&target, &Json::encode(&json!({ "n": numbers }))).await.unwrap();
        let mut wrong = numbers;
        wrong.push(json!("x"));
        let failure = schemas.check(&target, &Json::encode(&json!({ "n": wrong }))).await.unwrap_err();
        assert!(failure.message.contains("arguments/n/50000"), "{}", failure.message);
    }

    #[tokio::test]
    async fn regular_expressions_are_bounded_and_look_around_still_works() {
        let schemas = Schemas::default();
        let pattern = |pattern: &str| target(&json!({ "properties": { "a": { "pattern": pattern } } }));
        let evil = pattern("^(?=(a+)+$)(a+)+$");
        let begun = Instant::now();
        let text = json!({ "a": format!("{}!", "a".repeat(50)) });
        let _ = schemas.check(&evil, &Json::encode(&text)).await;
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        let look = Schemas::default();
        let no_admin = pattern("^(?!admin)[\\w-]{1,64}$");
        look.check(&no_admin, &Json::encode(&json!({ "a": "bob" }))).await.unwrap();
        look.check(&no_admin, &Json::encode(&json!({ "a": "admin" }))).await.unwrap_err();
        let huge = target(&json!({ "properties": { "a": { "pattern": "((a{500}){500}){500}" } } }));
        let begun = Instant::now();
        Schemas::default().check(&huge, &Json::encode(&json!({ "a": "b" }))).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
}
