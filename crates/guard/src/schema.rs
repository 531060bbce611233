//! Whether data fits a schema.
//!
//! A validator's own message quotes the value that does not fit, so it is not used: only the keyword that was broken is told.

use std::borrow::Cow;

use jsonschema::Validator;
use rialto_model::{
    json::Json,
    message::{Content, Part, text_of},
};
use serde_json::Value;

use crate::guards::CompileError;

/// A schema, put into shape.
pub(crate) struct Compiled(Validator);

// === impl Compiled ===

impl Compiled {
    pub(crate) fn new(schema: &Value) -> Result<Self, CompileError> {
        jsonschema::validator_for(schema)
            .map(Self)
            .map_err(|error| CompileError::Invalid(format!("the schema of a json-schema check: {error}")))
    }

    /// Each part that does not fit, and the keyword that says so.
    pub(crate) fn misfits(&self, parts: &[Part]) -> Vec<(usize, Cow<'static, str>)> {
        let mut misfits = Vec::new();
        let mut has_data = false;
        for (n, part) in parts.iter().enumerate() {
            if let Content::Data(data) = &part.content {
                has_data = true;
                misfits.extend(self.misfit(&data.value()).map(|kind| (n, kind)));
            }
        }
        if !has_data {
            let kind = match Json::parse(text_of(parts).trim()) {
                Ok(data) => self.misfit(&data.value()),
                Err(_) => Some(Cow::Borrowed("not-json")),
            };
            misfits.extend(kind.map(|kind| (0, kind)));
        }
        misfits
    }

    fn misfit(&self, value: &Value) -> Option<Cow<'static, str>> {
        let error = self.0.validate(value).err()?;
        let path = error.schema_path().to_string();
        Some(Cow::Owned(path.rsplit('/').next().unwrap_or_default().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn misfits(parts: &[Part]) -> Vec<(usize, Cow<'static, str>)> {
        let schema = json!({ "type": "object", "properties": { "n": { "maximum": 3 } } });
        Compiled::new(&schema).unwrap().misfits(parts)
    }

    #[test]
    fn the_broken_keyword_is_told_and_not_the_value() {
        let parts = [Part::text("hi"), Part::data(Json::from(json!({ "n": 7 })))];
        assert_eq!(misfits(&parts), [(1, "maximum".into())]);
        assert!(misfits(&[Part::data(Json::from(json!({ "n": 2 })))]).is_empty());
    }

    #[test]
    fn a_message_of_text_must_be_json_that_fits() {
        assert_eq!(misfits(&[Part::text("hi")]), [(0, "not-json".into())]);
        assert_eq!(misfits(&[Part::text("[1]")]), [(0, "type".into())]);
        assert!(misfits(&[Part::text(" {} ")]).is_empty());
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        assert!(Compiled::new(&json!({ "type": 7 })).is_err());
    }
}
