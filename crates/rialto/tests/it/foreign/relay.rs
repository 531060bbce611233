//! Every A2A client in front of every foreign agent, with Rialto between them: who speaks what does not matter any more.
//!
//! The test has each pair do one operation, another one for each pair. With `RIALTO_RELAY_TABLE` set (`interop/matrix` does
//! it) each pair does all of them, and the table is written into that file.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::operations::{Operation, Seen, Visit};
use crate::harness::{
    a2a_client::{A2aClient, ClientVariant, KINDS},
    foreign_agent::ForeignAgent,
    rialto::Rialto,
    webhook_receiver::WebhookReceiver,
};

/// The file that the table is written into, and how it is known there.
const TABLE: &str = "RIALTO_RELAY_TABLE";
const BEGIN: &str = "<!-- made by interop/matrix -->\n";
const END: &str = "<!-- end -->\n";

/// So many clients are there at once.
const AT_ONCE: usize = 3;

/// Every agent there is: what a reader is told, and how it is started.
pub(super) const AGENTS: &[(&str, &str, &[&str])] = &[
    ("py 1.3 JSON-RPC", "py_1_3", &[]),
    ("py 1.3 HTTP+JSON", "py_1_3", &["--binding", "rest"]),
    ("py 1.3 gRPC", "py_1_3", &["--binding", "grpc"]),
    ("js 1.3 JSON-RPC", "js_1_3", &[]),
    ("js 1.3 HTTP+JSON", "js_1_3", &["--binding", "rest"]),
    ("py 0.3 JSON-RPC", "py_0_3", &[]),
    ("py 0.3 HTTP+JSON", "py_0_3", &["--binding", "rest"]),
    ("py 0.3 gRPC", "py_0_3", &["--binding", "grpc"]),
    ("py 0.2", "py_0_2", &[]),
    ("0.1", "plain_0_1", &[]),
];

/// What came of one pair.
#[derive(Default)]
struct Cell {
    passed: usize,
    tried: usize,
    less: Vec<(Operation, &'static str)>,
    wrong: Vec<String>,
}

/// What is between the pairs.
struct Relay {
    url: String,
    token: Option<String>,
    receiver: WebhookReceiver,
    /// The agents' names here, in their order.
    slugs: Vec<String>,
}

#[test]
fn every_client_reaches_every_agent() {
    let peers: Vec<ForeignAgent> =
        AGENTS.iter().map(|&(_, peer, args)| ForeignAgent::start(peer, args)).collect();
    let rialto = Rialto::fresh().with("RIALTO_A2A__PUSH_PRIVATE", "true");
    let slugs = peers.iter().map(|peer| rialto.trust(&peer.url)).collect();
    let server = rialto.serve(&[]);
    let (url, token) = (server.url.clone(), server.token.clone());
    let relay = Relay { url, token, receiver: WebhookReceiver::start(), slugs };
    let table = std::env::var_os(TABLE);
    let rows = relay.rows(table.is_some());
    if let Some(file) = table {
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, with_table(&text, &written(&rows))).unwrap();
    }
    let wrong: Vec<&str> = rows.iter().flatten().flat_map(|cell| &cell.wrong).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

// === impl Relay ===

impl Relay {
    /// All clients with all agents, a few at a time: whoever is starved of a processor looks as if it failed.
    fn rows(&self, is_whole: bool) -> Vec<Vec<Cell>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let row = next.fetch_add(1, Ordering::Relaxed)
                && let Some(&kind) = KINDS.get(row)
            {
                done.push((row, self.row(row, kind, is_whole)));
            }
            done
        };
        let mut rows: Vec<(usize, Vec<Cell>)> = thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        rows.sort_by_key(|(row, _)| *row);
        rows.into_iter().map(|(_, cells)| cells).collect()
    }

    /// One client with all agents.
    fn row(&self, row: usize, kind: ClientVariant, is_whole: bool) -> Vec<Cell> {
        let columns = self.slugs.iter().enumerate();
        columns.map(|(column, slug)| self.cell(kind, slug, (!is_whole).then_some(row + column))).collect()
    }

    /// One client with one agent: all operations, or one of them.
    fn cell(&self, kind: ClientVariant, slug: &str, which: Option<usize>) -> Cell {
        let mut cell = Cell::default();
        let url = format!("{}/a2a/agents/{slug}", self.url);
        let mut client = match A2aClient::start(kind, &url, self.token.as_deref()) {
            Ok(client) => client,
            Err(why) => {
                cell.tried = 1;
                cell.wrong.push(format!("{} with {slug}: {why}", kind.name));
                return cell;
            }
        };
        let mut operations: Vec<Operation> = Operation::ALL.to_vec();
        operations.retain(|operation| operation.is_known_to(&client));
        if let Some(which) = which {
            operations = vec![operations[which % operations.len()]];
        }
        for operation in operations {
            cell.tried += 1;
            let mut visit =
                Visit { client: &mut client, prefix: "", tells_steps: true, receiver: &self.receiver };
            match visit.perform(operation) {
                Ok(Seen::Whole) => cell.passed += 1,
                Ok(Seen::Less(why)) => {
                    cell.passed += 1;
                    cell.less.push((operation, why));
                }
                Err(why) => {
                    cell.wrong.push(format!("{} with {slug}, {}: {why}", kind.name, operation.name()));
                }
            }
        }
        cell
    }
}

/// The table, and below it what its letters mean.
fn written(rows: &[Vec<Cell>]) -> String {
    let mut notes: BTreeMap<(&str, &str), char> = BTreeMap::new();
    let lesser = rows.iter().flatten().flat_map(|cell| &cell.less);
    for (letter, &(operation, why)) in ('a'..='z').zip(unique(lesser)) {
        notes.insert((operation.name(), why), letter);
    }
    let mut text = String::from("| client \\ agent |");
    AGENTS.iter().for_each(|(name, ..)| write!(text, " {name} |").unwrap());
    text += "\n|---|";
    AGENTS.iter().for_each(|_| text += "---|");
    text.push('\n');
    for (kind, cells) in KINDS.iter().zip(rows) {
        write!(text, "| {} |", kind.name).unwrap();
        for cell in cells {
            let letters: String =
                cell.less.iter().map(|(operation, why)| notes[&(operation.name(), *why)]).collect();
            let letters = if letters.is_empty() { letters } else { format!(" <sup>{letters}</sup>") };
            write!(text, " {}/{}{letters} |", cell.passed, cell.tried).unwrap();
        }
        text.push('\n');
    }
    let mut notes: Vec<_> =
        notes.into_iter().map(|((operation, why), letter)| (letter, operation, why)).collect();
    notes.sort_unstable();
    text.push('\n');
    for (letter, operation, why) in notes {
        writeln!(text, "- <sup>{letter}</sup> {operation}: {why}.").unwrap();
    }
    text
}

fn unique<'a>(
    all: impl Iterator<Item = &'a (Operation, &'static str)>,
) -> Vec<&'a (Operation, &'static str)> {
    let mut unique = Vec::new();
    for one in all {
        if !unique.contains(&one) {
            unique.push(one);
        }
    }
    unique
}

/// A text with the table that is in it replaced.
fn with_table(text: &str, table: &str) -> String {
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    format!("{before}{BEGIN}{table}{END}{after}")
}
