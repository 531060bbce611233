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
    patterns,
    scan::{Hit, Scanner},
    schema, strings, tokens,
};

/// More findings than this are not listed.
const MOST: usize = 1_000;

/// Guardrails, ready to be asked.
pub struct Guards {
    checks: Vec<Compiled>,
    classifiers: Vec<(Target, Action, Classifier)>,
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

    /// Looks through a message that goes this way.
    pub fn check(&self, parts: &[Part], target: Target) -> Findings {
        let mut look = self.look(target);
        for (n, part) in parts.iter().enumerate() {
            match &part.content {
                Content::Text(text) | Content::Url(text) => look.text(text, n, Field::Content),
                Content::Data(json) | Content::Unknown(json) => look.json(json, n, Field::Content),
                // A file's bytes are not text.
                Content::Raw(_) => {}
            }
            if let Some(name) = &part.filename {
                look.text(name, n, Field::Filename);
            }
            if let Some(metadata) = &part.metadata {
                look.json(metadata, n, Field::Metadata);
            }
        }
        look.whole(parts);
        look.findings
    }

    /// Looks through one text that goes this way.
    pub fn check_text(&self, text: &str, target: Target) -> Findings {
        self.check(&[Part::text(text)], target)
    }

    /// The same message with everything replaced by `[kind]` that is to be redacted.
    pub fn redact(&self, parts: &[Part], findings: &Findings) -> Vec<Part> {
        let mut parts = parts.to_vec();
        for (n, part) in parts.iter_mut().enumerate() {
            let cuts = |field: Field| cuts(findings, n, field);
            match &mut part.content {
                Content::Text(text) | Content::Url(text) => *text = cut(text, &cuts(Field::Content)),
                Content::Data(json) | Content::Unknown(json) => cut_json(json, &cuts(Field::Content)),
                Content::Raw(_) => {}
            }
            if let Some(name) = &mut part.filename {
                *name = cut(name, &cuts(Field::Filename));
            }
            if let Some(metadata) = &mut part.metadata {
                cut_json(metadata, &cuts(Field::Metadata));
            }
        }
        parts
    }

    /// The model servers to ask about what goes this way, and what is done when they find something.
    pub fn classifiers(&self, target: Target) -> impl Iterator<Item = (Action, &Classifier)> {
        let wanted = move |(aim, ..): &&(Target, Action, Classifier)| aim.meets(target);
        self.classifiers.iter().filter(wanted).map(|(_, action, classifier)| (*action, classifier))
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
                if !rule.config.url.starts_with("http") {
                    let why = format!("a {} check needs the url of a model server", check.name());
                    return Err(CompileError::Invalid(why));
                }
                self.classifiers.push((rule.target, action, rule.config.clone()));
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
        Content::Raw(_) => 0,
    };
    parts.iter().map(of).sum()
}

/// What is to be cut out of a field, in order and without overlaps.
fn cuts(findings: &Findings, part: usize, field: Field) -> Vec<(Range<usize>, String)> {
    let wanted = findings
        .found
        .iter()
        .filter(|finding| finding.action == Action::Redact && finding.part == part && finding.field == field);
    let mut cuts: Vec<(Range<usize>, String)> =
        wanted.filter_map(|finding| Some((finding.at.clone()?, format!("[{}]", finding.kind)))).collect();
    cuts.sort_by_key(|(at, _)| (at.start, std::cmp::Reverse(at.end)));
    let mut kept: Vec<(Range<usize>, String)> = Vec::with_capacity(cuts.len());
    for (at, word) in cuts {
        match kept.last_mut() {
            // Two that overlap are cut out as one, under the name of the first.
            Some((last, _)) if at.start < last.end => last.end = last.end.max(at.end),
            _ => kept.push((at, word)),
        }
    }
    kept
}

fn cut(text: &str, cuts: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, word) in cuts {
        out.push_str(text.get(copied..at.start).unwrap_or_default());
        out.push_str(word);
        copied = at.end;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    out
}

fn cut_json(json: &mut Json, cuts: &[(Range<usize>, String)]) {
    if !cuts.is_empty() {
        // Cutting within strings leaves JSON; if it ever did not, nothing of it goes on.
        *json = Json::parse(strings::replaced(json.get(), cuts)).unwrap_or_else(|_| Json::null());
    }
}
