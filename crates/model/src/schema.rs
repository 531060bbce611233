//! JSON Schemas of types whose serde implementation is written by hand, for the OpenAPI document of `/api/v1`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    credential::Credential,
    json::{Extra, Json},
};

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({})
    }
}

impl JsonSchema for Extra {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Extra".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

impl JsonSchema for Credential {
    fn schema_name() -> Cow<'static, str> {
        "Credential".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Source of an agent's secret, and how it is sent to the agent",
            "properties": {
                "env": { "type": "string", "description": "Environment variable that holds the secret" },
                "file": { "type": "string", "description": "File that holds the secret" },
                "store": { "type": "string", "description": "Name of a secret in the store" },
                "scheme": { "type": "object", "description": "How the secret is sent; absent: as the agent's card requires" },
                "hosts": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Hosts besides the agent's own that may receive it, as `host` or `host:port`",
                },
                "callers": { "type": "object", "description": "Secrets of single callers, by the caller's name" },
                "namedCallersOnly": {
                    "type": "boolean",
                    "description": "Only callers with a secret of their own may call the agent",
                },
            },
            "additionalProperties": true,
        })
    }
}
