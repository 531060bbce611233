//! Guardrails, put into shape once, and what they find in a message.
//!
//! Several guardrails can hold at once, an org's and a skill's. Each message is looked through once for all of them, and of two
//! that find the same the stricter one counts.

use std::{borrow::Cow, fmt, ops::Range};

use rialto_model::{
    json::Json,
    message::{Content, Part},
};

use crate::{
    classifier::Classifier,
    config::{Action, Check, Guardrail, Target},
    finding::{Field, Finding, Findings},
    kind::{Kind, Kinds},
    patterns, raw,
    scan::{Hit, Scanner},
    schema, strings, tokens,
};

/// More findings than this are not listed.
const MOST: usize = 1_000;

/// Guardrails, ready to be asked.
pub struct Guards {
    checks: Vec<Compiled>,
    classifiers: Vec<Asked>,
    input: Option<Scanner>,
    output: Option<Scanner>,
}

/// Why guardrails cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Something in the configuration does not hold up.
    #[error("{0}")]
    Invalid(String),
    /// One of our own patterns does not hold up.
    #[error("a built-in pattern cannot be used: {0}")]
    BuiltIn(String),
}

/// A model server that is asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The type of the check that asks it.
    pub check: &'static str,
    /// What is done when it finds something.
    pub action: Action,
    /// How it is asked.
    pub classifier: Classifier,
    target: Target,
}

struct Compiled {
    name: &'static str,
    target: Target,
    action: Action,
    what: What,
}

enum What {
    Kinds(Kinds),
    Patterns(patterns::Compiled),
    MaxTokens(usize),
    Schema(schema::Compiled),
}

/// What is being looked through, and what was found so far.
struct Look<'g> {
    guards: &'g Guards,
    target: Target,
    scanner: Option<&'g Scanner>,
    hits: Vec<Hit>,
    findings: Findings,
}

// === impl Guards ===

impl Guards {
    /// Puts guardrails into shape that hold together; none when there is nothing to look for.
    pub fn compile<'a>(
        guardrails: impl IntoIterator<Item = &'a Guardrail>,
    ) -> Result<Option<Self>, CompileError> {
        let mut guards = Self { checks: Vec::new(), classifiers: Vec::new(), input: None, output: None };
        for guardrail in guardrails.into_iter().filter(|guardrail| guardrail.enabled) {
            for check in &guardrail.checks {
                guards.add(check, guardrail.action)?;
            }
        }
        // Of two checks that find the same the strictest is asked first.
        guards.checks.sort_by_key(|check| std::cmp::Reverse(check.action));
        guards.input = guards.scanner_for(Target::Input)?;
        guards.output = guards.scanner_for(Target::Output)?;
        Ok((!guards.checks.is_empty() || !guards.classifiers.is_empty()).then_some(guards))
    }

    /// Guardrails that let nothing go on, for when those that should be there cannot be.
    pub fn closed() -> Self {
        let all = Compiled {
            name: "guardrail",
            target: Target::Both,
            action: Action::Block,
            what: What::MaxTokens(0),
        };
        Self { checks: vec![all], classifiers: Vec::new(), input: None, output: None }
    }

    /// Looks through a message that goes this way.
    pub fn check(&self, parts: &[Part], target: Target) -> Findings {
        let mut look = self.look_through(parts, target);
        look.whole(parts);
        look.findings
    }

    /// The same without what is about messages as a whole: their length, and whether they fit a schema. For words that go along with
    /// a message, and for news of how work goes on.
    pub fn glance(&self, parts: &[Part], target: Target) -> Findings {
        self.look_through(parts, target).findings
    }

    fn look_through(&self, parts: &[Part], target: Target) -> Look<'_> {
        let mut look = self.look(target);
        for (n, part) in parts.iter().enumerate() {
            match &part.content {
                Content::Text(text) | Content::Url(text) => look.text(text, n, Field::Content),
                Content::Data(json) | Content::Unknown(json) => look.json(json, n, Field::Content),
                Content::Raw(raw) => {
                    if let Some(text) = raw::text(part, raw) {
                        look.text(&text, n, Field::Content);
                    }
                }
            }
            if let Some(name) = &part.filename {
                look.text(name, n, Field::Filename);
            }
            if let Some(metadata) = &part.metadata {
                look.json(metadata, n, Field::Metadata);
            }
            if !part.extra.is_empty() {
                look.json(&Json::encode(&part.extra), n, Field::Extra);
            }
        }
        look
    }

    /// Looks through one text that goes this way.
    pub fn check_text(&self, text: &str, target: Target) -> Findings {
        self.check(&[Part::text(text)], target)
    }

    /// The model servers to ask about what goes this way.
    pub fn classifiers(&self, target: Target) -> impl Iterator<Item = &Asked> {
        self.classifiers.iter().filter(move |asked| asked.target.meets(target))
    }

    /// Whether anything is looked for in what goes this way.
    pub fn look_at(&self, target: Target) -> bool {
        self.checks.iter().any(|check| check.target.meets(target))
            || self.classifiers(target).next().is_some()
    }

    /// Whether what goes this way must wait until it was looked through: something may be blocked or replaced.
    pub fn hold(&self, target: Target) -> bool {
        let is_strict = |action: Action| action >= Action::Redact;
        self.checks.iter().any(|check| check.target.meets(target) && is_strict(check.action))
            || self.classifiers(target).any(|asked| is_strict(asked.action))
    }

    fn look(&self, target: Target) -> Look<'_> {
        let scanner = match target {
            Target::Input | Target::Both => self.input.as_ref(),
            Target::Output => self.output.as_ref(),
        };
        Look { guards: self, target, scanner, hits: Vec::new(), findings: Findings::default() }
    }

    fn add(&mut self, check: &Check, action: Action) -> Result<(), CompileError> {
        let what = match check {
            Check::Pii(rule) => {
                let kinds = rule.config.kinds.iter().map(|kind| Kinds::of(kind.kinds()));
                What::Kinds(kinds.fold(Kinds::default(), Kinds::with))
            }
            Check::PromptInjection(rule) => {
                let kinds = rule.config.kinds.iter().map(|kind| Kinds::of(&[kind.kind()]));
                What::Kinds(kinds.fold(Kinds::default(), Kinds::with))
            }
            Check::Secrets(rule) => {
                let wanted = |is_wanted: bool, kinds: &[Kind]| {
                    if is_wanted { Kinds::of(kinds) } else { Kinds::default() }
                };
                let assigned = [Kind::AssignedSecret, Kind::UrlPassword];
                What::Kinds(
                    wanted(rule.config.known, Kind::KEYS)
                        .with(wanted(rule.config.assigned, &assigned))
                        .with(wanted(rule.config.high_entropy, &[Kind::HighEntropy])),
                )
            }
            Check::Regex(rule) => What::Patterns(patterns::Compiled::new(&rule.config.patterns)?),
            Check::MaxTokens(rule) => What::MaxTokens(rule.config.limit),
            Check::JsonSchema(rule) => What::Schema(schema::Compiled::new(&rule.config.schema)?),
            Check::Classifier(rule) | Check::Toxicity(rule) => {
                rule.config
                    .check()
                    .map_err(|why| CompileError::Invalid(format!("a {} check: {why}", check.name())))?;
                let (check, target) = (check.name(), rule.target);
                self.classifiers.push(Asked { check, action, classifier: rule.config.clone(), target });
                return Ok(());
            }
        };
        self.checks.push(Compiled { name: check.name(), target: check.target(), action, what });
        Ok(())
    }

    fn scanner_for(&self, target: Target) -> Result<Option<Scanner>, CompileError> {
        let kinds = self.checks.iter().filter(|check| check.target.meets(target)).map(Compiled::kinds);
        let kinds = kinds.fold(Kinds::default(), Kinds::with);
        if kinds.is_empty() { Ok(None) } else { Scanner::new(kinds).map(Some) }
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.checks.iter().map(|check| check.name).collect();
        f.debug_struct("Guards").field("checks", &names).finish_non_exhaustive()
    }
}

// === impl Compiled ===

impl Compiled {
    fn kinds(&self) -> Kinds {
        if let What::Kinds(kinds) = self.what { kinds } else { Kinds::default() }
    }
}

// === impl Look ===

impl Look<'_> {
    fn text(&mut self, text: &str, part: usize, field: Field) {
        self.scan(text, None, (part, field), Range::clone);
    }

    fn json(&mut self, json: &Json, part: usize, field: Field) {
        strings::walk(json.get(), |scrap| {
            self.scan(&scrap.text, scrap.key, (part, field), |at| scrap.place(at));
        });
    }

    fn scan(
        &mut self,
        text: &str,
        key: Option<&str>,
        (part, field): (usize, Field),
        place: impl Fn(&Range<usize>) -> Range<usize>,
    ) {
        if let Some(scanner) = self.scanner {
            let mut hits = std::mem::take(&mut self.hits);
            scanner.scan(text, key, &mut hits);
            for hit in hits.drain(..) {
                let (name, at) = (Cow::Borrowed(hit.kind.name()), Some(place(&hit.at)));
                let owner = self.checks().find(|check| check.kinds().has(hit.kind));
                if let Some((check, action)) = owner.map(|check| (check.name, check.action)) {
                    self.found(Finding { check, kind: name, part, field, at, action });
                }
            }
            self.hits = hits;
        }
        for check in self.checks() {
            if let What::Patterns(patterns) = &check.what {
                patterns.find(text, |kind, at| {
                    let at = Some(place(&at));
                    self.found(Finding { check: check.name, kind, part, field, at, action: check.action });
                });
            }
        }
    }

    /// What is about the message as a whole.
    fn whole(&mut self, parts: &[Part]) {
        for check in self.checks() {
            let found = |part, kind| Finding {
                check: check.name,
                kind,
                part,
                field: Field::Message,
                at: None,
                action: check.action,
            };
            match &check.what {
                What::MaxTokens(limit) if tokens_of(parts) > *limit => {
                    self.found(found(0, Cow::Borrowed("too-long")));
                }
                What::Schema(schema) => {
                    for (part, kind) in schema.misfits(parts) {
                        self.found(found(part, kind));
                    }
                }
                What::Kinds(_) | What::Patterns(_) | What::MaxTokens(_) => {}
            }
        }
    }

    fn found(&mut self, finding: Finding) {
        if self.findings.found.len() < MOST {
            self.findings.found.push(finding);
        } else {
            self.findings.is_cut = true;
        }
    }
}

impl<'g> Look<'g> {
    /// The checks that look this way, the strictest first.
    fn checks(&self) -> impl Iterator<Item = &'g Compiled> + use<'g> {
        let target = self.target;
        self.guards.checks.iter().filter(move |check| check.target.meets(target))
    }
}

fn tokens_of(parts: &[Part]) -> usize {
    let of = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => tokens::estimate(text),
        Content::Data(json) | Content::Unknown(json) => tokens::estimate(json.get()),
        Content::Raw(raw) => raw::text(part, raw).map_or(0, |text| tokens::estimate(&text)),
    };
    parts.iter().map(of).sum()
}
