//! Security schemes of a card.
//!
//! 1.0 names each scheme by its kind (`apiKeySecurityScheme`) and puts requirements under `securityRequirements`; 0.3 and 0.2 write
//! schemes as OpenAPI does (`type`, `in`) and requirements under `security`; 0.1 only lists names. Invalid ones are ignored: a card is
//! third-party text, and the operator can configure the scheme.

use rialto_model::{
    card::Card,
    credential::{ApiKeyLocation, CredentialScheme, OAuth},
};
use serde_json::{Map, Value};

/// Schemes that need only one secret, those that the card requires first. Client certificates are excluded: they belong to the
/// connection.
pub fn offered(card: &Card) -> Vec<CredentialScheme> {
    let card = card.raw.value();
    let Some(schemes) = card.get("securitySchemes").and_then(Value::as_object) else {
        return old_words(&card);
    };
    let required: Vec<_> = requirements(&card).iter().filter_map(|one| single(one, schemes)).collect();
    if !required.is_empty() {
        return required;
    }
    schemes.values().filter_map(|scheme| read(scheme, &[])).collect()
}

/// Alternatives, each a list of scheme names with their scopes.
fn requirements(card: &Value) -> Vec<Vec<(String, Vec<String>)>> {
    let list = ["securityRequirements", "security"].iter().find_map(|name| card.get(name)?.as_array());
    let named = |one: &Value| -> Option<Vec<_>> {
        let names = one.get("schemes").and_then(Value::as_object).or_else(|| one.as_object())?;
        Some(names.iter().map(|(name, wants)| (name.clone(), words(wants))).collect())
    };
    list.into_iter().flatten().filter_map(named).collect()
}

/// The one scheme of a requirement that needs a secret, if there is exactly one.
fn single(requirement: &[(String, Vec<String>)], schemes: &Map<String, Value>) -> Option<CredentialScheme> {
    let wanted: Vec<_> = requirement
        .iter()
        .filter_map(|(name, scopes)| Some((schemes.get(name)?, scopes)))
        .filter(|(scheme, _)| !is_certificate(scheme))
        .collect();
    match wanted.as_slice() {
        [(scheme, scopes)] => read(scheme, scopes),
        _ => None,
    }
}

fn read(scheme: &Value, scopes: &[String]) -> Option<CredentialScheme> {
    let old = scheme.get("type").and_then(Value::as_str);
    let kind = |new: &str, name: &str| scheme.get(new).or_else(|| (old == Some(name)).then_some(scheme));
    if let Some(key) = kind("apiKeySecurityScheme", "apiKey") {
        return api_key(key);
    }
    if let Some(http) = kind("httpAuthSecurityScheme", "http") {
        let name = text(http, "scheme").unwrap_or_default();
        return http_scheme(name);
    }
    if let Some(oauth) = kind("oauth2SecurityScheme", "oauth2") {
        return Some(oauth2(oauth, scopes));
    }
    kind("openIdConnectSecurityScheme", "openIdConnect").map(|_| CredentialScheme::Bearer)
}

fn api_key(key: &Value) -> Option<CredentialScheme> {
    let place = match text(key, "location").or_else(|| text(key, "in"))?.to_ascii_lowercase().as_str() {
        "header" => ApiKeyLocation::Header,
        "query" => ApiKeyLocation::Query,
        "cookie" => ApiKeyLocation::Cookie,
        _ => return None,
    };
    Some(CredentialScheme::ApiKey { place, name: text(key, "name")?.to_owned() })
}

fn http_scheme(name: &str) -> Option<CredentialScheme> {
    match name.to_ascii_lowercase().as_str() {
        "bearer" => Some(CredentialScheme::Bearer),
        "basic" => Some(CredentialScheme::Basic { user: None }),
        _ => None,
    }
}

/// Without the client credentials flow, the token comes from elsewhere: it is sent as a bearer token.
fn oauth2(oauth: &Value, scopes: &[String]) -> CredentialScheme {
    let flow = oauth.get("flows").and_then(|flows| flows.get("clientCredentials"));
    match flow.and_then(|flow| text(flow, "tokenUrl")) {
        Some(url) => CredentialScheme::OAuth2(OAuth {
            token_url: Some(url.to_owned()),
            scopes: scopes.to_vec(),
            ..OAuth::default()
        }),
        None => CredentialScheme::Bearer,
    }
}

fn is_certificate(scheme: &Value) -> bool {
    scheme.get("mtlsSecurityScheme").is_some() || text(scheme, "type") == Some("mutualTLS")
}

fn old_words(card: &Value) -> Vec<CredentialScheme> {
    let listed = card.get("authentication").and_then(|how| how.get("schemes"));
    listed.map(words).unwrap_or_default().iter().filter_map(|word| http_scheme(word)).collect()
}

/// List of strings, bare or in 1.0's wrapper.
fn words(value: &Value) -> Vec<String> {
    let list = value.get("list").unwrap_or(value).as_array();
    list.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(members: &str) -> Vec<CredentialScheme> {
        offered(&crate::card::decode(&format!(r#"{{"name":"A","skills":[],{members}}}"#)).unwrap())
    }

    fn key(place: ApiKeyLocation, name: &str) -> CredentialScheme {
        CredentialScheme::ApiKey { place, name: name.to_owned() }
    }

    #[test]
    fn the_newest_cards_name_a_scheme_by_its_kind() {
        let schemes = r#""securitySchemes":{
            "key":{"apiKeySecurityScheme":{"location":"header","name":"X-Key"}},
            "user":{"httpAuthSecurityScheme":{"scheme":"Basic"}},
            "token":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"https://id/token","scopes":{}}}}},
            "cert":{"mtlsSecurityScheme":{}}}"#;
        let required =
            |requirements: &str| of(&format!(r#"{schemes},"securityRequirements":[{requirements}]"#));
        assert_eq!(required(r#"{"schemes":{"user":{}}}"#), [CredentialScheme::Basic { user: None }]);
        assert_eq!(
            required(r#"{"schemes":{"cert":{},"key":{"list":[]}}}"#),
            [key(ApiKeyLocation::Header, "X-Key")]
        );
        let oauth = OAuth {
            token_url: Some("https://id/token".into()),
            scopes: vec!["read".into()],
            ..OAuth::default()
        };
        assert_eq!(required(r#"{"schemes":{"token":{"list":["read"]}}}"#), [CredentialScheme::OAuth2(oauth)]);
        assert_eq!(of(schemes).len(), 3);
    }

    #[test]
    fn older_cards_write_schemes_as_openapi_does() {
        let schemes = r#""securitySchemes":{
            "q":{"type":"apiKey","in":"query","name":"key"},
            "c":{"type":"apiKey","in":"cookie","name":"sid"},
            "b":{"type":"http","scheme":"bearer"},
            "o":{"type":"openIdConnect","openIdConnectUrl":"https://id"},
            "p":{"type":"oauth2","flows":{"authorizationCode":{"tokenUrl":"https://id"}}}}"#;
        let required = |requirements: &str| of(&format!(r#"{schemes},"security":[{requirements}]"#));
        assert_eq!(
            required(r#"{"c":[]},{"q":[]}"#),
            [key(ApiKeyLocation::Cookie, "sid"), key(ApiKeyLocation::Query, "key")]
        );
        assert_eq!(required(r#"{"o":[]},{"p":["a"]}"#), [CredentialScheme::Bearer, CredentialScheme::Bearer]);
        // Two secrets at once are more than one credential.
        assert_eq!(required(r#"{"q":[],"c":[]},{"b":[]}"#), [CredentialScheme::Bearer]);
    }

    #[test]
    fn the_oldest_cards_list_words() {
        assert_eq!(of(r#""authentication":{"schemes":["Basic"]}"#), [CredentialScheme::Basic { user: None }]);
    }

    #[test]
    fn what_cannot_be_read_is_passed_over() {
        for members in [
            r#""securitySchemes":7"#,
            r#""securitySchemes":{"a":{"type":"apiKey","in":"body","name":"x"},"b":3,"c":{"type":"http"}}"#,
            r#""securitySchemes":{},"security":[3,{"x":7}]"#,
            r#""authentication":{"schemes":"Bearer"}"#,
        ] {
            assert_eq!(of(members), [], "{members}");
        }
    }
}
