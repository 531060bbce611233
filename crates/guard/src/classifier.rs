//! What a model server is asked about a text, and how its answer is read.
//!
//! Only the shapes are here: whoever may call out over HTTP sends the one and reads the other.

use std::collections::BTreeMap;

use rialto_model::credential::SecretSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest answer that is read, in bytes.
pub const LONGEST_ANSWER: usize = 64 * 1024;

/// The longest text of one question, in bytes; what is longer is asked about piece by piece.
pub const LONGEST_TEXT: usize = 64 * 1024;

/// What can be set for `classifier` and `toxicity`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Classifier {
    /// Where the question goes, as `POST` of `{"text": …, "labels": […]}`. The answer is `{"scores": {"<label>": 0.0 to 1.0}}`.
    pub url: String,
    /// What is asked about; `toxicity` alone unless said otherwise.
    pub labels: Vec<String>,
    /// From which score on it counts.
    pub threshold: f64,
    /// How long the answer may take, in milliseconds.
    pub timeout_ms: u64,
    /// What counts when the server cannot be asked, takes too long, or answers something else: `closed` is as if it had found
    /// everything, `open` as if it had found nothing.
    pub on_error: OnError,
    /// Where the token for it is: `env:NAME`, `file:PATH` or `store:NAME`. It is sent as `Authorization: Bearer`.
    pub token: Option<String>,
    /// Whether it may be at a private or loopback address.
    pub allow_private: bool,
}

/// What counts when nobody could be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// Nothing was found.
    Open,
    /// Something was found, of the kind `unanswered`.
    #[default]
    Closed,
}

/// What is asked.
#[derive(Clone, Debug, Serialize)]
pub struct Question<'a> {
    /// The text.
    pub text: &'a str,
    /// What is asked about.
    pub labels: &'a [String],
}

/// What is answered.
#[derive(Clone, Debug, Deserialize)]
pub struct Answer {
    /// How sure the server is of each label, from 0 to 1.
    pub scores: BTreeMap<String, f64>,
}

// === impl Classifier ===

impl Default for Classifier {
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

impl Classifier {
    /// What cannot be meant, naming the option.
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

    /// What is asked about a text.
    pub fn question<'a>(&'a self, text: &'a str) -> Question<'a> {
        Question { text, labels: &self.labels }
    }

    /// The labels that count, by an answer. One that was asked about and has no score counts: nobody has cleared it.
    pub fn hits<'a>(&'a self, answer: &Answer) -> Vec<&'a str> {
        let is_cleared = |score: &f64| *score < self.threshold;
        let counts = |label: &&String| !answer.scores.get(*label).is_some_and(is_cleared);
        self.labels.iter().filter(counts).map(String::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_at_the_threshold_and_labels_without_a_score_count() {
        let labels = ["toxicity", "violence", "spam"].map(str::to_owned).to_vec();
        let classifier = Classifier { labels, ..Classifier::default() };
        let answer: Answer = serde_json::from_str(r#"{"scores":{"toxicity":0.8,"spam":0.79}}"#).unwrap();
        assert_eq!(classifier.hits(&answer), ["toxicity", "violence"]);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_name() {
        let good = Classifier { url: "https://models.example.com".to_owned(), ..Classifier::default() };
        assert!(good.check().is_ok());
        let wrong = [
            (Classifier { url: "models".to_owned(), ..good.clone() }, "url"),
            (Classifier { labels: Vec::new(), ..good.clone() }, "labels"),
            (Classifier { threshold: 0.0, ..good.clone() }, "threshold"),
            (Classifier { token: Some("hunter2".to_owned()), ..good }, "token"),
        ];
        for (classifier, name) in wrong {
            let why = classifier.check().unwrap_err();
            assert!(why.starts_with(name) && !why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn the_question_names_the_text_and_the_labels() {
        let classifier = Classifier::default();
        let question = serde_json::to_string(&classifier.question("hello")).unwrap();
        assert_eq!(question, r#"{"text":"hello","labels":["toxicity"]}"#);
    }
}
