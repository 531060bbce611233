//! Output of commands: tables, JSON and a progress spinner.

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
use rialto_secrets::SecretsError;
use serde::Serialize;
use tokio::task::JoinHandle;

/// Why a command did not succeed, and the status to exit with.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// For the person.
    pub(crate) message: String,
    /// For the shell.
    pub(crate) status: u8,
    /// For programs, with `--json`.
    pub(crate) failure: Option<Failure>,
}

/// Delay before the spinner appears.
const SPINNER_DELAY: Duration = Duration::from_secs(1);

/// A sign of life on stderr, after a second, and only on a terminal.
pub(crate) struct ProgressSpinner {
    bar: ProgressBar,
    /// Shows it in a second.
    showing: JoinHandle<()>,
}

/// Prints one line. A closed output is not an error.
pub(crate) fn print_line(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stdout(), "{}", text.as_ref());
}

/// Prints one line, and returns an error if output is closed.
pub(crate) fn try_print_line(text: impl AsRef<str>) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.as_ref())?;
    out.flush()
}

/// Prints one line beside the result.
pub(crate) fn print_note(text: impl AsRef<str>) {
    let _ = writeln!(std::io::stderr(), "{}", text.as_ref());
}

/// Prints a value as indented JSON. Embedded raw JSON retains its text.
pub(crate) fn print_json<T: Serialize + ?Sized>(value: &T) {
    print_line(indent_json(&serde_json::to_string(value).unwrap_or_default()));
}

/// Prints a table, as wide as the terminal, or plain if output is not a terminal.
pub(crate) fn print_table(header: &[&str], rows: Vec<Vec<String>>) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !std::io::stdout().is_terminal() {
        table.set_content_arrangement(ContentArrangement::Disabled);
    }
    table.set_header(header.iter().map(|name| name.to_uppercase()));
    for row in rows {
        table.add_row(row.into_iter().map(|cell| sanitize(&cell)));
    }
    for text in table.to_string().lines() {
        print_line(text.trim_end());
    }
}

/// Removes control characters from untrusted text, which could move the cursor or reverse the text.
pub(crate) fn sanitize(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_hidden(c) { ' ' } else { c }).collect()
}

/// Indents JSON. Only white space changes: numbers are not parsed, so they keep all digits.
fn indent_json(json: &str) -> String {
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

// === impl ProgressSpinner ===

impl ProgressSpinner {
    /// Begins with a word on what takes so long.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::with_target(ProgressDrawTarget::stderr(), what)
    }

    fn with_target(target: ProgressDrawTarget, what: impl Into<String>) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        bar.set_message(what.into());
        let later = bar.clone();
        let showing = tokio::spawn(async move {
            tokio::time::sleep(SPINNER_DELAY).await;
            later.set_draw_target(target);
            later.enable_steady_tick(Duration::from_millis(120));
        });
        Self { bar, showing }
    }

    /// Sets the message.
    pub(crate) fn set_message(&self, text: &str) {
        self.bar.set_message(sanitize(text));
    }
}

impl Drop for ProgressSpinner {
    fn drop(&mut self) {
        self.showing.abort();
        self.bar.finish_and_clear();
    }
}

// === impl CommandError ===

impl CommandError {
    /// Error in the arguments of a command.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 2, failure: None }
    }

    /// Any other error.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: 1, failure: None }
    }
}

impl From<Failure> for CommandError {
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

impl From<rialto_engine::registry::RegistryError> for CommandError {
    fn from(error: rialto_engine::registry::RegistryError) -> Self {
        Failure::from(error).into()
    }
}

impl From<SecretsError> for CommandError {
    fn from(trouble: SecretsError) -> Self {
        match trouble {
            SecretsError::Usage(why) => Self::usage(why),
            SecretsError::Missing(_) => Self::usage(trouble.to_string()),
            _ => Self::failed(trouble.to_string()),
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<crate::app::BuildError> for CommandError {
    fn from(error: crate::app::BuildError) -> Self {
        Self::failed(error.to_string())
    }
}

impl From<crate::config::ConfigError> for CommandError {
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
        assert_eq!(indent_json(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        assert_eq!(
            indent_json("{ \"n\" :123456789012345678901234567890.10}"),
            "{\n  \"n\": 123456789012345678901234567890.10\n}"
        );
    }

    /// Terminal that records whether it was drawn on.
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
        let spinner =
            ProgressSpinner::with_target(ProgressDrawTarget::term_like(Box::new(paper.clone())), "calling");
        spinner.set_message("still");
        tokio::time::sleep(SPINNER_DELAY / 4).await;
        drop(spinner);
        assert!(!paper.is_drawn_on());
        let spinner =
            ProgressSpinner::with_target(ProgressDrawTarget::term_like(Box::new(paper.clone())), "calling");
        let drawn = async {
            while !paper.is_drawn_on() {
                tokio::time::sleep(SPINNER_DELAY / 20).await;
            }
        };
        tokio::time::timeout(SPINNER_DELAY * 20, drawn).await.unwrap();
        drop(spinner);
    }

    #[test]
    fn what_an_agent_says_cannot_move_the_cursor() {
        assert_eq!(sanitize("a\u{1b}[2Jb\u{202e}c\nd"), "a [2Jb c d");
    }
}
