//! Check of a whole database: its pages, its files, its references, and every row that can be read.
//!
//! It works on a database that is in use and on one that is too damaged to be opened by a server. Tasks are read in batches, each in a transaction of
//! its own, so that a long check does not keep the log from beginning anew.

use std::{path::Path, sync::atomic::AtomicU64};

use rialto_model::{
    event::RecordedEvent,
    ids::TaskId,
    store::{ChainVerification, StoreError},
    task::{Task, TaskHead},
};
use rusqlite::{Connection, config::DbConfig};

use super::{
    agents, audit, checksum,
    connect::{self, FILE, SCHEMA},
    flows, policies, secrets, startup_check, tasks, tenants, tokens, use_lock, wal, webhooks,
    write_buffer::recovery,
};
use crate::{
    archive::restored,
    check::CheckReport,
    error::{DatabaseError, DatabaseLocation, SqliteError},
    open::CardParser,
};

/// Tasks read in one transaction.
const BATCH_TASKS: i64 = 1000;

/// Check of one database.
struct Checker<'a> {
    connection: Connection,
    folder: &'a Path,
    parse: CardParser,
    report: CheckReport,
    progress: &'a dyn Fn(&str),
}

/// Checks the database in `folder`, and says on the way what it is at. An error means that nothing could be checked at all.
pub fn check_folder(
    folder: &Path,
    parse: CardParser,
    progress: &dyn Fn(&str),
) -> Result<CheckReport, StoreError> {
    let (path, place) = (folder.join(FILE), DatabaseLocation::file(&folder.join(FILE)));
    if !path.is_file() {
        let what = format!("there is no database in {}; name the data folder with --data", folder.display());
        return Err(DatabaseError::plain(what).into());
    }
    let mut report = CheckReport::default();
    if !use_lock::is_in_use(folder) {
        restored::compare(folder, None).iter().for_each(|what| report.add("files", what));
        match wal::inspect(&path) {
            Ok(state) => {
                startup_check::describe(&path, state).iter().for_each(|what| report.add("files", what));
            }
            Err(error) => report.add("files", format!("{}-wal cannot be read: {error}", path.display())),
        }
    }
    let connection = match examiner(folder) {
        Ok(connection) => connection,
        Err(error) => {
            report.add("pages", with_cause(&place.fault(error)));
            return Ok(report);
        }
    };
    let mut checker = Checker { connection, folder, parse, report, progress };
    checker.run(&place);
    Ok(checker.report)
}

// === impl Checker ===

impl Checker<'_> {
    fn run(&mut self, place: &DatabaseLocation) {
        (self.progress)("pages and indexes");
        self.pages(place);
        match connect::schema_of(&self.connection) {
            Ok(SCHEMA) => {}
            Ok(schema) => {
                let what = format!(
                    "the database has schema {schema}, and this program knows {SCHEMA}: rows are checked only by the version that the server runs"
                );
                return self.report.add("schema", what);
            }
            Err(error) => return self.report.add("schema", with_cause(&place.fault(error))),
        }
        self.buffers(place);
        (self.progress)("references");
        self.references(place);
        self.tables(place);
        (self.progress)("tasks and events");
        self.all_tasks(place);
        (self.progress)("audit seals");
        self.audit(place);
    }

    fn pages(&mut self, place: &DatabaseLocation) {
        match connect::findings(&self.connection, "PRAGMA integrity_check(100)") {
            Ok(findings) => findings.iter().for_each(|finding| self.report.add("pages", finding)),
            Err(error) => self.report.add("pages", with_cause(&place.fault(error))),
        }
    }

    fn buffers(&mut self, place: &DatabaseLocation) {
        match recovery::damaged(&self.connection, self.folder) {
            Ok(damaged) => {
                damaged
                    .iter()
                    .for_each(|path| self.report.add("files", startup_check::describe_buffer(path)));
            }
            Err(error) => self.report.add("files", with_cause(&place.fault(error))),
        }
    }

    fn references(&mut self, place: &DatabaseLocation) {
        // Claims of messages are made before their tasks and may outlive a process that dies in between: they are no finding.
        let counts = [
            (
                "references",
                "SELECT count(*) FROM pragma_foreign_key_check",
                "rows refer to a row that is missing",
            ),
            (
                "events",
                "SELECT count(*) FROM task_events WHERE NOT EXISTS (SELECT 1 FROM tasks WHERE row = key / 16777216)",
                "batches of events belong to no task",
            ),
            (
                "pushes",
                "SELECT count(*) FROM push_configs WHERE task NOT IN (SELECT id FROM tasks)",
                "push notification configurations belong to no task",
            ),
        ];
        for (check, sql, what) in counts {
            match self.connection.query_row(sql, [], |row| row.get::<_, u64>(0)) {
                Ok(count) => self.report.add_orphans(check, count, what),
                Err(error) => self.report.add(check, with_cause(&place.fault(error))),
            }
        }
    }

    /// Reads the small tables as the program reads them.
    fn tables(&mut self, place: &DatabaseLocation) {
        let (connection, parse) = (&self.connection, self.parse);
        let read: [(&'static str, Result<(), SqliteError>); 7] = [
            ("agents", agents::all(connection, parse).map(drop)),
            ("tokens", tokens::all(connection).map(drop)),
            ("secrets", secrets::all(connection).map(drop)),
            ("policies", policies::all(connection).map(drop)),
            ("webhooks", webhooks::all(connection).map(drop)),
            ("tenants", tenants::all(connection).map(drop)),
            ("flows", flows::read_all(connection)),
        ];
        for (check, outcome) in read {
            if let Err(failure) = outcome {
                self.report.add(check, with_cause(&place.explain(failure)));
            }
        }
    }

    fn all_tasks(&mut self, place: &DatabaseLocation) {
        let mut after = i64::MIN;
        loop {
            match self.batch(after, place) {
                Ok(Some(last)) => after = last,
                Ok(None) => return,
                // The pages that cannot be read are listed above.
                Err(failure) => return self.report.add("tasks", with_cause(&place.explain(failure))),
            }
            (self.progress)(&format!("{} tasks", self.report.tasks));
        }
    }

    /// Reads the tasks behind row `after` with their events. Answers the last row, if there is one.
    fn batch(&mut self, after: i64, place: &DatabaseLocation) -> Result<Option<i64>, SqliteError> {
        let reading = self.connection.unchecked_transaction()?;
        let mut select =
            reading.prepare_cached("SELECT * FROM tasks WHERE row > ?1 ORDER BY row LIMIT ?2")?;
        let mut rows = select.query([after, BATCH_TASKS])?;
        let mut last = None;
        while let Some(row) = rows.next()? {
            last = Some(row.get("row")?);
            self.report.tasks += 1;
            let head = match tasks::head(row) {
                Ok(head) => head,
                Err(failure) => {
                    let id: String = row.get("id").unwrap_or_default();
                    self.report.add("tasks", format!("task {id}: {}", with_cause(&place.explain(failure))));
                    continue;
                }
            };
            if !checksum::is_intact(row, &checksum::TASK_COLUMNS)? {
                self.report.add("tasks", format!("task {} is not as it was written (checksum)", head.id));
            }
            for last in tasks::damaged_events(&reading, row.get("row")?)? {
                let what = format!(
                    "task {}: the events up to {last} are not as they were written (checksum)",
                    head.id
                );
                self.report.add("events", what);
            }
            match tasks::events(&reading, &TaskId::from(head.id.as_str()), 0) {
                Ok(events) if events.len() as u64 == head.version => {
                    if let Some(what) = differs_from_events(&head, &events) {
                        self.report
                            .add("tasks", format!("task {}: its {what} is not what its events say", head.id));
                    }
                }
                Ok(events) => {
                    let (has, expected) = (events.len(), head.version);
                    self.report.add(
                        "events",
                        format!("task {} has {has} events and should have {expected}", head.id),
                    );
                }
                Err(failure) => self
                    .report
                    .add("events", format!("task {}: {}", head.id, with_cause(&place.explain(failure)))),
            }
        }
        Ok(last)
    }

    fn audit(&mut self, place: &DatabaseLocation) {
        match audit::verify(&self.connection, &AtomicU64::new(0)) {
            Ok(ChainVerification::Sound { records, .. }) => self.report.audit_records = records,
            Ok(ChainVerification::Broken { record, why }) => {
                self.report.add("audit", format!("record {record} is not as it was written: {why}"));
            }
            Err(failure) => self.report.add("audit", with_cause(&place.explain(failure))),
        }
    }
}

/// Names the column of a task that its events contradict, if there is one.
fn differs_from_events(head: &TaskHead, events: &[RecordedEvent]) -> Option<&'static str> {
    let mut task = Task::new(head.clone().as_opened());
    let is_possible = events.iter().all(|recorded| task.apply(&recorded.event, recorded.at));
    if !is_possible || task.head.state != head.state {
        return Some("state");
    }
    (task.head.remote != head.remote).then_some("remote name")
}

/// A connection that leaves the log as it is when it is closed: a damaged one is evidence.
fn examiner(folder: &Path) -> rusqlite::Result<Connection> {
    let connection = connect::reader(folder)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// An error with all its causes.
fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
