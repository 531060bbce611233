//! JSON Schema check.
//!
//! A validator's own message quotes the invalid value, so it is not used: only the violated keyword is reported.

use std::borrow::Cow;

use jsonschema::Validator;
use rialto_model::{
    json::Json,
    message::{Content, Part, text_of},
};
use serde_json::Value;

use crate::ruleset::CompileError;

/// Compiled schema.
pub(crate) struct SchemaCheck(Validator);

// === impl SchemaCheck ===

impl SchemaCheck {
    pub(crate) fn new(schema: &Value) -> Result<Self, CompileError> {
        jsonschema::validator_for(schema)
            .map(Self)
            .map_err(|error| CompileError::Invalid(format!("the schema of a json-schema check: {error}")))
    }

    /// Parts that do not match, with the violated keyword.
    pub(crate) fn violations(&self, parts: &[Part]) -> Vec<(usize, Cow<'static, str>)> {
        let mut violations = Vec::new();
        let mut has_data = false;
        for (n, part) in parts.iter().enumerate() {
            if let Content::Data(data) = &part.content {
                has_data = true;
                violations.extend(self.violation(&data.value()).map(|kind| (n, kind)));
            }
        }
        if !has_data {
            let kind = match Json::parse(text_of(parts).trim()) {
                Ok(data) => self.violation(&data.value()),
                Err(_) => Some(Cow::Borrowed("not-json")),
            };
            violations.extend(kind.map(|kind| (0, kind)));
        }
        violations
    }

    fn violation(&self, value: &Value) -> Option<Cow<'static, str>> {
        let error = self.0.validate(value).err()?;
        let path = error.schema_path().to_string();
        Some(Cow::Owned(path.rsplit('/').next().unwrap_or_default().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn violations(parts: &[Part]) -> Vec<(usize, Cow<'static, str>)> {
        let schema = json!({ "type": "object", "properties": { "n": { "maximum": 3 } } });
        SchemaCheck::new(&schema).unwrap().violations(parts)
    }

    #[test]
    fn the_violated_keyword_is_reported_and_not_the_value() {
        let parts = [Part::text("hi"), Part::data(Json::from(json!({ "n": 7 })))];
        assert_eq!(violations(&parts), [(1, "maximum".into())]);
        assert!(violations(&[Part::data(Json::from(json!({ "n": 2 })))]).is_empty());
    }

    #[test]
    fn a_message_of_text_must_be_json_that_fits() {
        assert_eq!(violations(&[Part::text("hi")]), [(0, "not-json".into())]);
        assert_eq!(violations(&[Part::text("[1]")]), [(0, "type".into())]);
        assert!(violations(&[Part::text(" {} ")]).is_empty());
    }

    #[test]
    fn an_invalid_schema_is_refused() {
        assert!(SchemaCheck::new(&json!({ "type": 7 })).is_err());
    }
}
