//! Arguments repeated in headers, so that intermediaries can route by them (`x-mcp-header` in a skill's schema).
//!
//! A header that differs from the body could deceive an intermediary, so such a request is rejected. Most registries have no such skill;
//! then nothing is checked.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderMap;
use rialto_model::{call::Caller, card::Skill, json::Json};
use rmcp::{
    ErrorData,
    model::{ErrorCode, ProtocolVersion},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{fast_path::codec, tool_service::ToolService};

/// Schema keyword.
const HEADER_KEYWORD: &str = "x-mcp-header";

/// Prefix of the headers.
const HEADER_PREFIX: &str = "mcp-param-";

/// JSON-RPC error code of a mismatch.
const HEADER_MISMATCH: i32 = -32020;

/// Call, parsed as far as the comparison with its headers needs.
#[derive(Deserialize)]
struct HeaderCall {
    id: Json,
    params: HeaderCallParams,
}

#[derive(Deserialize)]
struct HeaderCallParams {
    name: String,
    #[serde(default = "Json::empty_object")]
    arguments: Json,
}

/// Mismatch of a header and an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HeaderMismatch(String);

/// Error response to a 2026-07-28 call whose headers and arguments differ. None for all others.
pub(crate) fn refusal(
    desk: &ToolService,
    caller: &Caller,
    headers: &HeaderMap,
    body: &[u8],
) -> Option<Vec<u8>> {
    if !desk.engine.registry().any_schema_has(HEADER_KEYWORD) {
        return None;
    }
    let has = |name: &str, value: &str| headers.get(name).is_some_and(|said| said == value);
    let is_call = has("mcp-method", "tools/call")
        && has("mcp-protocol-version", ProtocolVersion::V_2026_07_28.as_str());
    let called: HeaderCall = is_call.then(|| serde_json::from_slice(body).ok())??;
    let skill = desk.find(caller, &called.params.name)?.skill?;
    let Err(HeaderMismatch(message)) = check(&skill, &called.params.arguments, headers) else { return None };
    Some(codec::failed(called.id.raw(), &ErrorData::new(ErrorCode(HEADER_MISMATCH), message, None)))
}

/// Compares the headers and arguments of a call.
fn check(skill: &Skill, args: &Json, headers: &HeaderMap) -> Result<(), HeaderMismatch> {
    let Some(schema) = skill.input_schema.as_ref().filter(|schema| schema.get().contains(HEADER_KEYWORD))
    else {
        return Ok(());
    };
    let (schema, args) = (schema.value(), args.value());
    let mut named = Vec::new();
    find(schema.get("properties").and_then(Value::as_object), &args, &mut named);
    for (name, value) in named {
        let header = format!("{HEADER_PREFIX}{}", name.to_ascii_lowercase());
        let said = one(headers, &header)?;
        match (value.and_then(text), said) {
            (None, None) => {}
            (Some(wanted), Some(said)) if wanted == said => {}
            (Some(_), Some(_)) => {
                return Err(HeaderMismatch(format!(
                    "the header {header} says something else than the arguments"
                )));
            }
            (Some(_), None) => return Err(HeaderMismatch(format!("the header {header} is missing"))),
            (None, Some(_)) => {
                return Err(HeaderMismatch(format!("the header {header} is there, but not its argument")));
            }
        }
    }
    Ok(())
}

/// Members with a header, and their values in the arguments.
fn find<'a>(
    properties: Option<&'a Map<String, Value>>,
    args: &'a Value,
    named: &mut Vec<(&'a str, Option<&'a Value>)>,
) {
    for (member, schema) in properties.into_iter().flatten() {
        let value = args.get(member);
        if let Some(name) = schema.get(HEADER_KEYWORD).and_then(Value::as_str) {
            named.push((name, value.filter(|value| !value.is_null())));
        }
        find(schema.get("properties").and_then(Value::as_object), value.unwrap_or(&Value::Null), named);
    }
}

/// Value of a header that occurs once and is valid.
fn one(headers: &HeaderMap, name: &str) -> Result<Option<String>, HeaderMismatch> {
    let unreadable = || HeaderMismatch(format!("the header {name} cannot be read"));
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(HeaderMismatch(format!("the header {name} is there twice")));
    }
    let value = value.to_str().map_err(|_| unreadable())?.trim_matches([' ', '\t']);
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Some(value.to_owned()));
    };
    let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| unreadable())?;
    String::from_utf8(bytes).map(Some).map_err(|_| unreadable())
}

/// Header text of a value; none for values that headers cannot express.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rialto_testkit::agents::{skill, skill_with_schema};
    use serde_json::json;

    use super::*;

    fn checked(args: Value, headers: &[(&'static str, &str)]) -> Result<(), String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" },
                "place": { "type": "object", "properties": { "zone": { "type": "integer", "x-mcp-header": "Zone" } } },
                "other": { "type": "string" },
            },
        });
        let headers = headers.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        let headers: HeaderMap = headers.collect();
        check(&skill_with_schema("ask", schema), &Json::from(args), &headers).map_err(|mismatch| mismatch.0)
    }

    #[test]
    fn headers_say_what_the_arguments_say() {
        assert_eq!(checked(json!({ "other": "x" }), &[]), Ok(()));
        assert_eq!(checked(json!({ "region": null }), &[]), Ok(()));
        assert_eq!(checked(json!({ "region": "eu" }), &[("mcp-param-region", " eu ")]), Ok(()));
        assert_eq!(
            checked(json!({ "region": "Hello" }), &[("mcp-param-region", "=?base64?SGVsbG8=?=")]),
            Ok(())
        );
        assert_eq!(checked(json!({ "region": "SGVsbG8=" }), &[("mcp-param-region", "SGVsbG8=")]), Ok(()));
        assert_eq!(checked(json!({ "place": { "zone": 5 } }), &[("mcp-param-zone", "5")]), Ok(()));
        let plain = check(&skill("ask"), &Json::empty_object(), &HeaderMap::new());
        assert_eq!(plain, Ok(()));
    }

    #[test]
    fn anything_else_is_refused() {
        for (args, headers, why) in [
            (json!({ "region": "eu" }), vec![], "the header mcp-param-region is missing"),
            (
                json!({ "region": "eu" }),
                vec![("mcp-param-region", "us")],
                "the header mcp-param-region says something else than the arguments",
            ),
            (
                json!({}),
                vec![("mcp-param-region", "eu")],
                "the header mcp-param-region is there, but not its argument",
            ),
            (
                json!({ "region": "Hello" }),
                vec![("mcp-param-region", "=?base64?SGVsbG8?=")],
                "the header mcp-param-region cannot be read",
            ),
            (
                json!({ "region": "eu" }),
                vec![("mcp-param-region", "eu"), ("mcp-param-region", "us")],
                "the header mcp-param-region is there twice",
            ),
            (json!({ "place": { "zone": 5 } }), vec![], "the header mcp-param-zone is missing"),
        ] {
            assert_eq!(checked(args.clone(), &headers), Err(why.to_owned()), "{args}");
        }
    }
}
