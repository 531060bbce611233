//! Checks arguments against a skill's own schema before anything leaves.

use std::{collections::HashMap, sync::Arc};

use jsonschema::Validator;
use parking_lot::Mutex;
use rialto_model::{
    call::Target,
    failure::{Failure, Kind},
    ids::{AgentId, SkillId},
    json::Json,
};
use serde_json::json;

/// Compiled schemas are kept up to this many; then the memory is emptied and fills anew.
const REMEMBERED: usize = 4_096;

/// Compiles each skill's schema once per version of its card.
#[derive(Default)]
pub(crate) struct Schemas {
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
        let Some(validator) = self.validator(target) else { return Ok(()) };
        let args = args.value();
        let Err(error) = validator.validate(&args) else { return Ok(()) };
        let path = error.instance_path().to_string();
        let place = if path.is_empty() { "the arguments".to_owned() } else { format!("arguments{path}") };
        let data = json!({ "path": path, "expected": error.to_string(), "schemaPath": error.schema_path().to_string() });
        Err(Failure::new(Kind::Invalid, format!("{place}: {error}")).with_data(Json::of(&data)))
    }

    fn validator(&self, target: &Target) -> Option<Arc<Validator>> {
        let skill = target.skill.as_ref()?;
        let text = skill.input_schema.as_ref()?;
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

fn compile(text: &Json, target: &Target) -> Option<Arc<Validator>> {
    match jsonschema::validator_for(&text.value()) {
        Ok(validator) => Some(Arc::new(validator)),
        Err(error) => {
            tracing::warn!(
                agent.id = %target.agent.id, skill.id = target.skill_id(),
                "the input schema of {} cannot be used, so its arguments are not checked: {error}", target.verb()
            );
            None
        }
    }
}
