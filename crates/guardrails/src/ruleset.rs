//! Compiled guardrails, and the scan of messages.
//!
//! Several guardrails can apply at once, an org's and a skill's. Each message is scanned once for all of them, and of two with the same
//! finding the stricter one counts.

use std::{borrow::Cow, fmt, ops::Range};

use rialto_model::{
    json::Json,
    message::{Content, Part},
};

use crate::{
    classifier::ClassifierOptions,
    config::{CheckAction, CheckDirection, Guardrail, GuardrailCheck},
    finding::{ContentFinding, Findings, PartField},
    finding_kind::{FindingKind, FindingKindSet},
    json_strings, patterns,
    scan::{ScanHit, Scanner},
    schema, text_attachments, token_estimate,
};

/// Maximum number of listed findings.
const MAX_FINDINGS: usize = 1_000;

/// Compiled guardrails.
pub struct GuardrailRuleset {
    checks: Vec<CompiledCheck>,
    classifiers: Vec<ClassifierCheck>,
    input: Option<Scanner>,
    output: Option<Scanner>,
}

/// Guardrails that cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Invalid configuration.
    #[error("{0}")]
    Invalid(String),
    /// Invalid built-in pattern.
    #[error("a built-in pattern cannot be used: {0}")]
    BuiltIn(String),
}

/// Check by a model server.
#[derive(Clone, Debug)]
pub struct ClassifierCheck {
    /// Type of the check.
    pub check: &'static str,
    /// Action when it finds something.
    pub action: CheckAction,
    /// Options of the request.
    pub classifier: ClassifierOptions,
    target: CheckDirection,
}

struct CompiledCheck {
    name: &'static str,
    target: CheckDirection,
    action: CheckAction,
    rule: CompiledRule,
}

enum CompiledRule {
    Kinds(FindingKindSet),
    Patterns(patterns::CompiledPatterns),
    MaxTokens(usize),
    Schema(schema::SchemaCheck),
}

/// Scan of a message, with the findings so far.
struct MessageScan<'g> {
    ruleset: &'g GuardrailRuleset,
    target: CheckDirection,
    scanner: Option<&'g Scanner>,
    hits: Vec<ScanHit>,
    findings: Findings,
}

// === impl GuardrailRuleset ===

impl GuardrailRuleset {
    /// Compiles guardrails that apply together; none when there is nothing to check.
    pub fn compile<'a>(
        guardrails: impl IntoIterator<Item = &'a Guardrail>,
    ) -> Result<Option<Self>, CompileError> {
        let mut ruleset = Self { checks: Vec::new(), classifiers: Vec::new(), input: None, output: None };
        for guardrail in guardrails.into_iter().filter(|guardrail| guardrail.enabled) {
            for check in &guardrail.checks {
                ruleset.add(check, guardrail.action)?;
            }
        }
        // Of two checks with the same finding the strictest comes first.
        ruleset.checks.sort_by_key(|check| std::cmp::Reverse(check.action));
        ruleset.input = ruleset.scanner_for(CheckDirection::Input)?;
        ruleset.output = ruleset.scanner_for(CheckDirection::Output)?;
        Ok((!ruleset.checks.is_empty() || !ruleset.classifiers.is_empty()).then_some(ruleset))
    }

    /// Guardrails that block everything, for when the configured ones cannot be used.
    pub fn blocking_all() -> Self {
        let all = CompiledCheck {
            name: "guardrail",
            target: CheckDirection::Both,
            action: CheckAction::Block,
            rule: CompiledRule::MaxTokens(0),
        };
        Self { checks: vec![all], classifiers: Vec::new(), input: None, output: None }
    }

    /// Checks a message of this direction.
    pub fn check(&self, parts: &[Part], target: CheckDirection) -> Findings {
        let mut scan = self.scan_parts(parts, target);
        scan.check_message(parts);
        scan.findings
    }

    /// Checks fields only, not the message as a whole (its length, its schema): for texts beside a message, and for progress updates.
    pub fn check_fields(&self, parts: &[Part], target: CheckDirection) -> Findings {
        self.scan_parts(parts, target).findings
    }

    fn scan_parts(&self, parts: &[Part], target: CheckDirection) -> MessageScan<'_> {
        let mut scan = self.new_scan(target);
        for (n, part) in parts.iter().enumerate() {
            match &part.content {
                Content::Text(text) | Content::Url(text) => scan.text(text, n, PartField::Content),
                Content::Data(json) | Content::Unknown(json) => scan.json(json, n, PartField::Content),
                Content::Raw(raw) => {
                    if let Some(text) = text_attachments::text_of_file(part, raw) {
                        scan.text(&text, n, PartField::Content);
                    }
                }
            }
            if let Some(name) = &part.filename {
                scan.text(name, n, PartField::Filename);
            }
            if let Some(metadata) = &part.metadata {
                scan.json(metadata, n, PartField::Metadata);
            }
            if !part.extra.is_empty() {
                scan.json(&Json::encode(&part.extra), n, PartField::Extra);
            }
        }
        scan
    }

    /// Checks one text of this direction.
    pub fn check_text(&self, text: &str, target: CheckDirection) -> Findings {
        self.check(&[Part::text(text)], target)
    }

    /// Model servers to ask about this direction.
    pub fn classifiers(&self, target: CheckDirection) -> impl Iterator<Item = &ClassifierCheck> {
        self.classifiers.iter().filter(move |check| check.target.meets(target))
    }

    /// True if anything is checked in this direction.
    pub fn has_checks(&self, target: CheckDirection) -> bool {
        self.checks.iter().any(|check| check.target.meets(target))
            || self.classifiers(target).next().is_some()
    }

    /// True if messages of this direction must wait for the check: something may be blocked or replaced.
    pub fn needs_hold(&self, target: CheckDirection) -> bool {
        let is_strict = |action: CheckAction| action >= CheckAction::Redact;
        self.checks.iter().any(|check| check.target.meets(target) && is_strict(check.action))
            || self.classifiers(target).any(|check| is_strict(check.action))
    }

    fn new_scan(&self, target: CheckDirection) -> MessageScan<'_> {
        let scanner = match target {
            CheckDirection::Input | CheckDirection::Both => self.input.as_ref(),
            CheckDirection::Output => self.output.as_ref(),
        };
        MessageScan { ruleset: self, target, scanner, hits: Vec::new(), findings: Findings::default() }
    }

    fn add(&mut self, check: &GuardrailCheck, action: CheckAction) -> Result<(), CompileError> {
        let compiled = match check {
            GuardrailCheck::Pii(rule) => {
                let kinds = rule.config.kinds.iter().map(|kind| FindingKindSet::new(kind.kinds()));
                CompiledRule::Kinds(kinds.fold(FindingKindSet::default(), FindingKindSet::union))
            }
            GuardrailCheck::PromptInjection(rule) => {
                let kinds = rule.config.kinds.iter().map(|kind| FindingKindSet::new(&[kind.kind()]));
                CompiledRule::Kinds(kinds.fold(FindingKindSet::default(), FindingKindSet::union))
            }
            GuardrailCheck::Secrets(rule) => {
                let wanted = |is_wanted: bool, kinds: &[FindingKind]| {
                    if is_wanted { FindingKindSet::new(kinds) } else { FindingKindSet::default() }
                };
                let assigned = [FindingKind::AssignedSecret, FindingKind::UrlPassword];
                CompiledRule::Kinds(
                    wanted(rule.config.known, FindingKind::SERVICE_KEYS)
                        .union(wanted(rule.config.assigned, &assigned))
                        .union(wanted(rule.config.high_entropy, &[FindingKind::HighEntropy])),
                )
            }
            GuardrailCheck::Regex(rule) => {
                CompiledRule::Patterns(patterns::CompiledPatterns::new(&rule.config.patterns)?)
            }
            GuardrailCheck::MaxTokens(rule) => CompiledRule::MaxTokens(rule.config.limit),
            GuardrailCheck::JsonSchema(rule) => {
                CompiledRule::Schema(schema::SchemaCheck::new(&rule.config.schema)?)
            }
            GuardrailCheck::Classifier(rule) | GuardrailCheck::Toxicity(rule) => {
                rule.config
                    .check()
                    .map_err(|why| CompileError::Invalid(format!("a {} check: {why}", check.name())))?;
                let (check, target) = (check.name(), rule.target);
                self.classifiers.push(ClassifierCheck {
                    check,
                    action,
                    classifier: rule.config.clone(),
                    target,
                });
                return Ok(());
            }
        };
        self.checks.push(CompiledCheck {
            name: check.name(),
            target: check.target(),
            action,
            rule: compiled,
        });
        Ok(())
    }

    fn scanner_for(&self, target: CheckDirection) -> Result<Option<Scanner>, CompileError> {
        let kinds = self.checks.iter().filter(|check| check.target.meets(target)).map(CompiledCheck::kinds);
        let kinds = kinds.fold(FindingKindSet::default(), FindingKindSet::union);
        if kinds.is_empty() { Ok(None) } else { Scanner::new(kinds).map(Some) }
    }
}

impl fmt::Debug for GuardrailRuleset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.checks.iter().map(|check| check.name).collect();
        f.debug_struct("Guards").field("checks", &names).finish_non_exhaustive()
    }
}

// === impl CompiledCheck ===

impl CompiledCheck {
    fn kinds(&self) -> FindingKindSet {
        if let CompiledRule::Kinds(kinds) = self.rule { kinds } else { FindingKindSet::default() }
    }
}

// === impl MessageScan ===

impl MessageScan<'_> {
    fn text(&mut self, text: &str, part: usize, field: PartField) {
        self.scan(text, None, (part, field), Range::clone);
    }

    fn json(&mut self, json: &Json, part: usize, field: PartField) {
        json_strings::visit_strings(json.get(), |string| {
            self.scan(&string.text, string.key, (part, field), |at| string.range_in_json(at));
        });
    }

    fn scan(
        &mut self,
        text: &str,
        key: Option<&str>,
        (part, field): (usize, PartField),
        place: impl Fn(&Range<usize>) -> Range<usize>,
    ) {
        if let Some(scanner) = self.scanner {
            let mut hits = std::mem::take(&mut self.hits);
            scanner.scan(text, key, &mut hits);
            for hit in hits.drain(..) {
                let (name, at) = (Cow::Borrowed(hit.kind.name()), Some(place(&hit.at)));
                let owner = self.checks().find(|check| check.kinds().contains(hit.kind));
                if let Some((check, action)) = owner.map(|check| (check.name, check.action)) {
                    self.add_finding(ContentFinding { check, kind: name, part, field, at, action });
                }
            }
            self.hits = hits;
        }
        for check in self.checks() {
            if let CompiledRule::Patterns(patterns) = &check.rule {
                patterns.find(text, |kind, at| {
                    let at = Some(place(&at));
                    self.add_finding(ContentFinding {
                        check: check.name,
                        kind,
                        part,
                        field,
                        at,
                        action: check.action,
                    });
                });
            }
        }
    }

    /// Checks the message as a whole.
    fn check_message(&mut self, parts: &[Part]) {
        for check in self.checks() {
            let found = |part, kind| ContentFinding {
                check: check.name,
                kind,
                part,
                field: PartField::Message,
                at: None,
                action: check.action,
            };
            match &check.rule {
                CompiledRule::MaxTokens(limit) if count_tokens(parts) > *limit => {
                    self.add_finding(found(0, Cow::Borrowed("too-long")));
                }
                CompiledRule::Schema(schema) => {
                    for (part, kind) in schema.violations(parts) {
                        self.add_finding(found(part, kind));
                    }
                }
                CompiledRule::Kinds(_) | CompiledRule::Patterns(_) | CompiledRule::MaxTokens(_) => {}
            }
        }
    }

    fn add_finding(&mut self, finding: ContentFinding) {
        if self.findings.found.len() < MAX_FINDINGS {
            self.findings.found.push(finding);
        } else {
            self.findings.is_cut = true;
        }
    }
}

impl<'g> MessageScan<'g> {
    /// Checks of this direction, the strictest first.
    fn checks(&self) -> impl Iterator<Item = &'g CompiledCheck> + use<'g> {
        let target = self.target;
        self.ruleset.checks.iter().filter(move |check| check.target.meets(target))
    }
}

fn count_tokens(parts: &[Part]) -> usize {
    let of = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => token_estimate::estimate_tokens(text),
        Content::Data(json) | Content::Unknown(json) => token_estimate::estimate_tokens(json.get()),
        Content::Raw(raw) => {
            text_attachments::text_of_file(part, raw).map_or(0, |text| token_estimate::estimate_tokens(&text))
        }
    };
    parts.iter().map(of).sum()
}
