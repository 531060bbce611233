//! What a model server is asked about a text, and how its answer is read.
//!
//! Only the shapes are here: whoever may call out over HTTP sends the one and reads the other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
        Self { url: String::new(), labels: vec!["toxicity".to_owned()], threshold: 0.8, timeout_ms: 2_000 }
    }
}

impl Classifier {
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
    fn the_question_names_the_text_and_the_labels() {
        let classifier = Classifier::default();
        let question = serde_json::to_string(&classifier.question("hello")).unwrap();
        assert_eq!(question, r#"{"text":"hello","labels":["toxicity"]}"#);
    }
}
