//! Takes out of a message what was found in it.

use std::ops::Range;

use rialto_model::{
    json::{Extra, Json},
    message::{Content, Part},
};

use crate::{
    config::Action,
    finding::{Field, Findings},
    guards::Guards,
    raw, strings,
};

// === impl Guards ===

impl Guards {
    /// The same message with everything replaced by `[kind]` that is to be redacted.
    pub fn redact(&self, parts: &[Part], findings: &Findings) -> Vec<Part> {
        let mut parts = parts.to_vec();
        for (n, part) in parts.iter_mut().enumerate() {
            let cuts = |field: Field| cuts(findings, n, field);
            let inside = cuts(Field::Content);
            if let Content::Raw(raw) = &part.content
                && !inside.is_empty()
                && let Some(text) = raw::text(part, raw)
            {
                part.content = Content::Raw(raw::file(&cut(&text, &inside)));
            }
            match &mut part.content {
                Content::Text(text) | Content::Url(text) => *text = cut(text, &inside),
                Content::Data(json) | Content::Unknown(json) => cut_json(json, &inside),
                Content::Raw(_) => {}
            }
            if let Some(name) = &mut part.filename {
                *name = cut(name, &cuts(Field::Filename));
            }
            if let Some(metadata) = &mut part.metadata {
                cut_json(metadata, &cuts(Field::Metadata));
            }
            let beside = cuts(Field::Extra);
            if !beside.is_empty() {
                let mut extra = Json::encode(&part.extra);
                cut_json(&mut extra, &beside);
                part.extra = extra.read::<Extra>().unwrap_or_default();
            }
        }
        parts
    }
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
