//! Checks arguments against a skill's own schema before anything leaves, and results where somebody has a schema for them.

use std::{collections::HashMap, sync::Arc};

use jsonschema::Validator;
use parking_lot::Mutex;
use rialto_model::{
    call::Target,
    failure::{Failure, Kind},
    ids::{AgentId, SkillId},
    json::Json,
};
use serde_json::{Value, json};

/// Compiled schemas are kept up to this many; then the memory is emptied and fills anew.
const REMEMBERED: usize = 4_096;

/// Compiles each skill's schema once per version of its card.
#[derive(Default)]
pub struct Schemas {
    compiled: Mutex<HashMap<(AgentId, SkillId), Compiled>>,
}

/// A schema's text, and what became of it; none when it cannot be compiled.
#[derive(Clone)]
struct Compiled {
    text: Json,
    validator: Option<Arc<Validator>>,
}

// === impl Schemas ===

impl Schemas {
    /// Refuses arguments that the skill's schema does not allow, naming the first place that is wrong.
    pub(crate) fn check(&self, target: &Target, args: &Json) -> Result<(), Failure> {
        let Some(schema) = target.skill.as_ref().and_then(|skill| skill.input_schema.as_ref()) else {
            return Ok(());
        };
        let Some(validator) = self.validator(target, schema) else { return Ok(()) };
        let args = args.value();
        let Err(error) = validator.validate(&args) else { return Ok(()) };
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "the arguments".to_owned() } else { format!("arguments{path}") };
        let data = json!({ "path": path, "expected": error.to_string(), "schemaPath": error.schema_path().to_string() });
        Err(Failure::new(Kind::Invalid, format!("{place}: {error}")).with_data(Json::of(&data)))
    }

    /// Why a value does not fit the schema that one of the target's skills has for it.
    pub fn check_value(&self, target: &Target, schema: &Json, value: &Value) -> Result<(), String> {
        let Some(validator) = self.validator(target, schema) else { return Ok(()) };
        validator.validate(value).map_err(|error| {
            let path = error.instance_path().to_string();
            if path.is_empty() { error.to_string() } else { format!("{path}: {error}") }
        })
    }

    fn validator(&self, target: &Target, text: &Json) -> Option<Arc<Validator>> {
        let skill = target.skill.as_ref()?;
        let key = (target.agent.id.clone(), skill.id.clone());
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(&key) {
            // The same text at the same address: the row we compiled from still lives.
            if std::ptr::eq(known.text.get(), text.get()) || known.text == *text {
                return known.validator.clone();
            }
        }
        if compiled.len() >= REMEMBERED {
            compiled.clear();
        }
        let validator = compile(text, target);
        compiled.insert(key, Compiled { text: text.clone(), validator: validator.clone() });
        validator
    }
}

/// Whether a schema can be used, or why it cannot.
pub fn is_schema(schema: &Json) -> Result<(), String> {
    jsonschema::validator_for(&schema.value()).map(drop).map_err(|error| error.to_string())
}

fn compile(text: &Json, target: &Target) -> Option<Arc<Validator>> {
    match jsonschema::validator_for(&text.value()) {
        Ok(validator) => Some(Arc::new(validator)),
        Err(error) => {
            tracing::warn!(
                agent.id = %target.agent.id, skill.id = target.skill_id(),
                "a schema of {} cannot be used, so nothing is checked with it: {error}", target.verb()
            );
            None
        }
    }
}
