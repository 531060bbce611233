//! What people and programs read: tables, JSON, and a sign of life while something takes long.

use std::{
    io::{IsTerminal, Write},
    time::Duration,
};

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rialto_model::{
    failure::{Failure, FailureKind},
    store::StoreError,
};
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::vault::TroubleWithSecrets;

/// Why a command did not succeed, and the status to exit with.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// For the person.
    pub(crate) message: String,
    /// For the shell.
    pub(crate) status: u8,
    /// For programs, with `--json`.
    pub(crate) failure: Option<Failure>,
}

/// How long something may take without a sign of life.
const SOON: Duration = Duration::from_secs(1);

/// A sign of life on stderr, after a second, and only on a terminal.
pub(crate) struct Spinner {
    bar: ProgressBar,
    /// Shows it in a second.
    showing: JoinHandle<()>,
}

/// Prints one line. A reader that went away is not our trouble.
pub(crate) fn line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Prints one line for whoever reads along, and says when nobody does any more.
pub(crate) fn try_line(text: impl AsRef<str>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.as_ref())?;
    out.flush()
}

/// Prints one line beside the result.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// Prints a value as JSON, on many lines. Raw JSON inside of it keeps its text.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) {
    line(indented(&serde_json::to_string(value).unwrap_or_default()));
}

/// Prints a table, as wide as the terminal, or plain when nobody looks.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table.set_header(header.iter().map(|name| name.to_uppercase()));
    for row in rows {
        table.add_row(row.into_iter().map(|cell| printable(&cell)));
    }
    for text in table.to_string().lines() {
        line(text.trim_end());
    }
}

/// What an agent says about itself is not to move the cursor or turn the text around.
pub(crate) fn printable(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

/// JSON with a line for each member. Only white space changes: a number is never read, so it keeps its digits.
fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut is_escaped) = (0_usize, false, false);
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            in_text = is_escaped || c != '"';
            is_escaped = !is_escaped && c == '\\';
            continue;
        }
        match c {
            c if c.is_whitespace() => {}
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|next| next.is_whitespace()).is_some() {}
                if let Some(end) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c => {
                in_text = c == '"';
                out.push(c);
            }
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

// === impl Spinner ===

impl Spinner {
    /// Begins with a word on what takes so long.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::on(ProgressDrawTarget::stderr(), what)
    }

    fn on(target: ProgressDrawTarget, what: impl Into<String>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(what.into());
        let later = bar.clone();
        let showing = tokio::spawn(async move {
            tokio::time::sleep(SOON).await;
            later.set_draw_target(target);
            later.enable_steady_tick(Duration::from_millis(120));
        });
        Self { bar, showing }
    }

    /// Says how it goes.
    pub(crate) fn say(&self, text: &str) {
        self.bar.set_message(printable(text));
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.showing.abort();
        self.bar.finish_and_clear();
    }
}

// === impl Trouble ===

impl Trouble {
    /// Trouble with how the command was given.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 2, failure: None }
    }

    /// Trouble of another kind.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 1, failure: None }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let status = match failure.kind {
            FailureKind::PeerFailed | FailureKind::Conflict | FailureKind::Unsupported => 1,
            FailureKind::Invalid => 2,
            FailureKind::Denied | FailureKind::Blocked | FailureKind::Unauthenticated => 3,
            FailureKind::NotFound => 4,
            FailureKind::PeerUnreachable | FailureKind::PeerGarbled => 5,
            FailureKind::PeerTimeout | FailureKind::Busy => 6,
            FailureKind::StoreUnavailable | FailureKind::Internal => 70,
        };
        Self { message: failure.message.clone(), status, failure: Some(failure) }
    }
}

impl From<rialto_engine::registry::RegistryError> for Trouble {
    fn from(error: rialto_engine::registry::RegistryError) -> Self {
        Failure::from(error).into()
    }
}

impl From<TroubleWithSecrets> for Trouble {
    fn from(trouble: TroubleWithSecrets) -> Self {
        match trouble {
            TroubleWithSecrets::Usage(why) => Self::usage(why),
            TroubleWithSecrets::Missing(_) => Self::usage(trouble.to_string()),
            _ => Self::other(trouble.to_string()),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::other(error.to_string())
    }
}

impl From<crate::program::BuildError> for Trouble {
    fn from(error: crate::program::BuildError) -> Self {
        Self::other(error.to_string())
    }
}

impl From<crate::config::ConfigError> for Trouble {
    fn from(error: crate::config::ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use indicatif::TermLike;

    use super::*;

    #[test]
    fn json_is_indented_and_no_digit_changes() {
        let value = serde_json::json!({ "a": [1, {}, [], { "b": "x\\\": [1, 2]" }], "ü": null });
        assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(
            indented("{ \"n\" :123456789012345678901234567890.10}"),
            "{\n  \"n\": 123456789012345678901234567890.10\n}"
        );
    }

    /// A terminal that remembers whether anything was drawn on it.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<AtomicBool>);

    impl Paper {
        fn draw(&self) -> std::io::Result<()> {
            self.0.store(true, Ordering::Relaxed);
            Ok(())
        }

        fn is_drawn_on(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }

        fn write_line(&self, _: &str) -> std::io::Result<()> {
            self.draw()
        }

        fn write_str(&self, _: &str) -> std::io::Result<()> {
            self.draw()
        }

        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_is_over_within_a_second_shows_no_sign_of_life() {
        let paper = Paper::default();
        let spinner = Spinner::on(ProgressDrawTarget::term_like(Box::new(paper.clone())), "calling");
        spinner.say("still");
        tokio::time::sleep(SOON / 4).await;
        drop(spinner);
        assert!(!paper.is_drawn_on());
        let spinner = Spinner::on(ProgressDrawTarget::term_like(Box::new(paper.clone())), "calling");
        let drawn = async {
            while !paper.is_drawn_on() {
                tokio::time::sleep(SOON / 20).await;
            }
        };
        tokio::time::timeout(SOON * 20, drawn).await.unwrap();
        drop(spinner);
    }

    #[test]
    fn what_an_agent_says_cannot_move_the_cursor() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\nd"), "a [2Jb c d");
    }
}
