//! Accuracy of the built-in checks: every line of the corpus, and the table in `docs/GUARDRAILS.md`.
//!
//! A kind that is expected in a line and found there is a hit, one that is not found is a miss, and one that is found without being
//! expected is a false alarm. `~~` is removed from a line when it is read: it keeps invented keys from being mistaken for real ones by
//! scanners of repositories.

use std::{collections::BTreeSet, fs, path::Path};

use rialto_guardrails::{
    GuardrailRuleset,
    config::{CheckDirection, Guardrail, GuardrailCheck},
};
use serde::Deserialize;

const CHECKS: [&str; 3] = ["pii", "secrets", "prompt-injection"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    kinds: BTreeSet<String>,
    text: String,
}

#[derive(Default)]
struct Score {
    lines: usize,
    hits: usize,
    misses: usize,
    alarms: usize,
    /// Wrong lines, for debugging.
    wrong: Vec<String>,
}

#[test]
fn precision_and_recall_are_what_the_page_says() {
    let page = fs::read_to_string(root().join("../../docs/GUARDRAILS.md")).unwrap();
    for check in CHECKS {
        let score = score(check);
        let row = score.row(check);
        let wrong = score.wrong.join("\n");
        assert!(page.contains(&row), "docs/GUARDRAILS.md must have this row:\n\n{row}\n\n{wrong}\n");
    }
}

#[test]
fn no_check_falls_below_what_it_is_worth_having_for() {
    for check in CHECKS {
        let score = score(check);
        let wrong = score.wrong.join("\n");
        assert!(score.precision() >= 0.95, "{check} cries wolf: {:.3}\n{wrong}", score.precision());
        assert!(score.recall() >= 0.90, "{check} overlooks too much: {:.3}\n{wrong}", score.recall());
    }
}

#[test]
fn the_corpus_has_enough_of_both() {
    for check in CHECKS {
        let (bad, good): (Vec<Line>, Vec<Line>) =
            lines(check).into_iter().partition(|line| !line.kinds.is_empty());
        assert!(bad.len() >= 50 && good.len() >= 40, "{check}: {} bad, {} good", bad.len(), good.len());
    }
}

fn score(check: &str) -> Score {
    let guardrail = Guardrail { checks: vec![GuardrailCheck::plain(check).unwrap()], ..Guardrail::default() };
    let guards = GuardrailRuleset::compile(&[guardrail]).unwrap().unwrap();
    let mut score = Score::default();
    for line in lines(check) {
        let text = line.text.replace("~~", "");
        let findings = guards.check_text(&text, CheckDirection::Input);
        let found: BTreeSet<String> = findings.found.iter().map(|finding| finding.kind.to_string()).collect();
        score.lines += 1;
        score.hits += found.intersection(&line.kinds).count();
        score.misses += line.kinds.difference(&found).count();
        score.alarms += found.difference(&line.kinds).count();
        if found != line.kinds {
            score.wrong.push(format!("{:?} found in {:?} of {:?}", found, text, line.kinds));
        }
    }
    score
}

fn lines(check: &str) -> Vec<Line> {
    let text = fs::read_to_string(root().join("corpus").join(format!("{check}.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

// === impl Score ===

impl Score {
    fn precision(&self) -> f64 {
        self.hits as f64 / (self.hits + self.alarms) as f64
    }

    fn recall(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses) as f64
    }

    fn row(&self, check: &str) -> String {
        let Self { lines, hits, misses, alarms, .. } = self;
        let (precision, recall) = (self.precision(), self.recall());
        format!("| `{check}` | {lines} | {hits} | {misses} | {alarms} | {precision:.3} | {recall:.3} |")
    }
}
