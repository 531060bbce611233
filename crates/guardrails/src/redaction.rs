//! Redaction: replaces findings in a message.

use std::ops::Range;

use rialto_model::{
    json::{Extra, Json},
    message::{Content, Part},
};

use crate::{
    config::CheckAction,
    finding::{Findings, PartField},
    json_strings,
    ruleset::GuardrailRuleset,
    text_attachments,
};

// === impl GuardrailRuleset ===

impl GuardrailRuleset {
    /// Replaces every finding that is to be redacted by `[kind]`.
    pub fn redact(&self, parts: &[Part], findings: &Findings) -> Vec<Part> {
        let mut parts = parts.to_vec();
        for (n, part) in parts.iter_mut().enumerate() {
            let cuts = |field: PartField| redactions(findings, n, field);
            let inside = cuts(PartField::Content);
            if let Content::Raw(raw) = &part.content
                && !inside.is_empty()
                && let Some(text) = text_attachments::text_of_file(part, raw)
            {
                part.content = Content::Raw(text_attachments::encode(&replace_ranges(&text, &inside)));
            }
            match &mut part.content {
                Content::Text(text) | Content::Url(text) => *text = replace_ranges(text, &inside),
                Content::Data(json) | Content::Unknown(json) => replace_in_json(json, &inside),
                Content::Raw(_) => {}
            }
            if let Some(name) = &mut part.filename {
                *name = replace_ranges(name, &cuts(PartField::Filename));
            }
            if let Some(metadata) = &mut part.metadata {
                replace_in_json(metadata, &cuts(PartField::Metadata));
            }
            let beside = cuts(PartField::Extra);
            if !beside.is_empty() {
                let mut extra = Json::encode(&part.extra);
                replace_in_json(&mut extra, &beside);
                part.extra = extra.read::<Extra>().unwrap_or_default();
            }
        }
        parts
    }
}

/// Ranges to replace in a field, in order and without overlaps.
fn redactions(findings: &Findings, part: usize, field: PartField) -> Vec<(Range<usize>, String)> {
    let wanted = findings.found.iter().filter(|finding| {
        finding.action == CheckAction::Redact && finding.part == part && finding.field == field
    });
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

fn replace_ranges(text: &str, cuts: &[(Range<usize>, String)]) -> String {
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

fn replace_in_json(json: &mut Json, cuts: &[(Range<usize>, String)]) {
    if !cuts.is_empty() {
        // Cutting within strings leaves JSON; if it ever did not, nothing of it is passed on.
        *json = Json::parse(json_strings::replace(json.get(), cuts)).unwrap_or_else(|_| Json::null());
    }
}
