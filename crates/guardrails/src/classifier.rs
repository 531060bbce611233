//! Request to a model server that classifies a text, and its response.
//!
//! Only the types are here: the caller of this crate does the HTTP.

use std::collections::BTreeMap;

use rialto_model::credential::SecretSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum bytes of a response.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// Maximum bytes of the text in one request; longer texts are split.
pub const MAX_REQUEST_TEXT_BYTES: usize = 64 * 1024;

/// Options of `classifier` and `toxicity`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClassifierOptions {
    /// Address of the model server. It receives a `POST` of `{"text": …, "labels": […]}` and answers `{"scores": {"<label>": 0.0 to 1.0}}`.
    pub url: String,
    /// Labels that are scored; `toxicity` alone by default.
    pub labels: Vec<String>,
    /// Score from which a label counts.
    pub threshold: f64,
    /// Timeout in milliseconds.
    pub timeout_ms: u64,
    /// Result when the server cannot be reached, times out, or answers something else: `closed` as if everything was found, `open` as if
    /// nothing was.
    pub on_error: OnError,
    /// Source of its token: `env:NAME`, `file:PATH` or `store:NAME`. It is sent as `Authorization: Bearer`.
    pub token: Option<String>,
    /// Allow a private or loopback address.
    pub allow_private: bool,
}

/// Result when the server could not be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// As if nothing was found.
    Open,
    /// As if something was found, of the kind `unanswered`.
    #[default]
    Closed,
}

/// Request to a model server.
#[derive(Clone, Debug, Serialize)]
pub struct ClassifyRequest<'a> {
    /// Text to classify.
    pub text: &'a str,
    /// Labels to score.
    pub labels: &'a [String],
}

/// Response of a model server.
#[derive(Clone, Debug, Deserialize)]
pub struct ClassifyResponse {
    /// Score of each label, from 0 to 1.
    pub scores: BTreeMap<String, f64>,
}

// === impl ClassifierOptions ===

impl Default for ClassifierOptions {
    fn default() -> Self {
        Self {
            url: String::new(),
            labels: vec!["toxicity".to_owned()],
            threshold: 0.8,
            timeout_ms: 2_000,
            on_error: OnError::default(),
            token: None,
            allow_private: false,
        }
    }
}

impl ClassifierOptions {
    /// Validates the options; the error names the option.
    pub fn check(&self) -> Result<(), String> {
        if !self.url.starts_with("http://") && !self.url.starts_with("https://") {
            return Err(
                "url: expected the address of a model server, like https://models.example.com/classify"
                    .to_owned(),
            );
        }
        if self.labels.is_empty() || self.labels.iter().any(|label| label.trim().is_empty()) {
            return Err("labels: expected at least one, and none that is empty".to_owned());
        }
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return Err("threshold: expected a number above 0, at most 1".to_owned());
        }
        if self.token.as_ref().is_some_and(|token| SecretSource::parse(token).is_none()) {
            return Err("token: expected where it is, env:NAME, file:PATH or store:NAME, and not the token"
                .to_owned());
        }
        Ok(())
    }

    /// Request for a text.
    pub fn request<'a>(&'a self, text: &'a str) -> ClassifyRequest<'a> {
        ClassifyRequest { text, labels: &self.labels }
    }

    /// Labels that count, by a response. A requested label without a score counts.
    pub fn matched_labels<'a>(&'a self, response: &ClassifyResponse) -> Vec<&'a str> {
        let is_cleared = |score: &f64| *score < self.threshold;
        let counts = |label: &&String| !response.scores.get(*label).is_some_and(is_cleared);
        self.labels.iter().filter(counts).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_at_the_threshold_and_labels_without_a_score_count() {
        let labels = ["toxicity", "violence", "spam"].map(str::to_owned).to_vec();
        let classifier = ClassifierOptions { labels, ..ClassifierOptions::default() };
        let response: ClassifyResponse =
            serde_json::from_str(r#"{"scores":{"toxicity":0.8,"spam":0.79}}"#).unwrap();
        assert_eq!(classifier.matched_labels(&response), ["toxicity", "violence"]);
    }

    #[test]
    fn an_invalid_option_is_refused_by_name() {
        let good = ClassifierOptions {
            url: "https://models.example.com".to_owned(),
            ..ClassifierOptions::default()
        };
        assert!(good.check().is_ok());
        let wrong = [
            (ClassifierOptions { url: "models".to_owned(), ..good.clone() }, "url"),
            (ClassifierOptions { labels: Vec::new(), ..good.clone() }, "labels"),
            (ClassifierOptions { threshold: 0.0, ..good.clone() }, "threshold"),
            (ClassifierOptions { token: Some("hunter2".to_owned()), ..good }, "token"),
        ];
        for (classifier, name) in wrong {
            let why = classifier.check().unwrap_err();
            assert!(why.starts_with(name) && !why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn the_question_names_the_text_and_the_labels() {
        let classifier = ClassifierOptions::default();
        let request = serde_json::to_string(&classifier.request("hello")).unwrap();
        assert_eq!(request, r#"{"text":"hello","labels":["toxicity"]}"#);
    }
}
