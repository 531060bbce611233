//! Header with guardrail warnings.

use http::{HeaderMap, HeaderName, HeaderValue};
use rialto_model::guardrail::{GUARDRAIL_HEADER, GuardrailNotice};

const HEADER_NAME: HeaderName = HeaderName::from_static(GUARDRAIL_HEADER);

/// Adds the header, if there is a warning.
pub fn insert(headers: &mut HeaderMap, notice: Option<&GuardrailNotice>) {
    if let Some(value) = notice.and_then(|notice| HeaderValue::from_str(&notice.header()).ok()) {
        headers.insert(HEADER_NAME, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_a_header_and_none_is_none() {
        let mut headers = HeaderMap::new();
        insert(&mut headers, None);
        assert!(headers.is_empty());
        let mut notice = GuardrailNotice::default();
        notice.add("pii", "email");
        insert(&mut headers, Some(&notice));
        assert_eq!(headers["x-rialto-guardrail"], "warn; checks=pii; kinds=email");
    }
}
