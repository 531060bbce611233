//! `rialto backup`, `rialto restore` and `rialto check`.
//!
//! They work at the data folder itself, beside a server that uses it: a backup is one snapshot of the database with everything in it that was
//! acknowledged before, and the policies and keys beside it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rialto_model::clock::{Clock, SystemClock};
use rialto_secrets::private_files;
use rialto_store::{
    CopyProgress, PostgresStore, SqliteStore,
    archive::{self, ArchiveError, ArchiveWriter, Manifest},
    check::CheckReport,
    check_folder,
};
use serde_json::json;

use crate::{
    api_client::ApiClient,
    app::{parse_card, store_error},
    cli::{BackupOptions, GlobalOptions, MaintenanceCommand, RestoreOptions},
    commands::{doctor, nodes},
    config::Config,
    environment::Environment,
    output::{self, CommandError, ProgressSpinner},
};

/// Name of the database in an archive and in a data folder.
const DATABASE: &str = "rialto.db";

/// Name of the database while a restore is under way: a folder without the final name is no store.
const UNFINISHED_DATABASE: &str = "rialto.db.restoring";

/// Name of the key to stored secrets in an archive.
const SECRET_KEY: &str = "secret.key";

/// Folders of the data folder that go into a backup.
const FOLDERS: [&str; 2] = ["policies", "webhooks"];

/// Endings of key files in the data folder that go into a backup.
const KEY_ENDINGS: [&str; 2] = ["key", "pem"];

/// Depth to which folders are searched.
const MAX_DEPTH: usize = 4;

/// Number of files that a backup may have beside the database.
const MAX_FILES: usize = 10_000;

pub(crate) async fn run(
    common: &GlobalOptions,
    environment: &Environment,
    command: MaintenanceCommand,
) -> Result<(), CommandError> {
    let place = || {
        let config = Config::load(common.config.as_deref(), environment)?;
        let folder = crate::data_folder(common, &config, environment);
        Ok::<_, CommandError>((config, folder))
    };
    match command {
        MaintenanceCommand::Doctor(listing) => doctor::run(common, environment, listing.json).await,
        MaintenanceCommand::Nodes(command) => {
            nodes::run(&ApiClient::open(common, environment).await?, command).await
        }
        MaintenanceCommand::Backup(options) => {
            let (config, folder) = place()?;
            backup(&config, &folder, environment, &options).await
        }
        MaintenanceCommand::Restore(options) => restore(&place()?.1, &options).await,
        MaintenanceCommand::Check(listing) => {
            let (config, folder) = place()?;
            check(&config, &folder, listing.json).await
        }
    }
}

async fn backup(
    config: &Config,
    folder: &Path,
    environment: &Environment,
    options: &BackupOptions,
) -> Result<(), CommandError> {
    // pg_dump uses one connection for all of its work, which a pooler may not leave it.
    let direct = |url| config.store.listen_url.as_ref().unwrap_or(url);
    if let Some(url) = config.store.url.as_ref().map(direct)
        && !options.files_only
    {
        return Err(CommandError::failed(format!(
            "the store is in PostgreSQL, which has its own backup. Run: pg_dump --format=custom --file={file}.dump '{}'. \
             Then back up policies and keys: rialto backup {file} --files-only",
            url.without_password(),
            file = options.file.display(),
        )));
    }
    if !folder.is_dir() {
        return Err(CommandError::failed(format!(
            "data folder {} does not exist; set it with --data",
            folder.display()
        )));
    }
    let spinner = Arc::new(ProgressSpinner::new("copying the database"));
    let begun = SystemClock.now();
    let mut archive = ArchiveWriter::create(&options.file, begun, options.force)?;
    if !options.files_only {
        let copy = TemporaryFile(archive::sibling(&options.file, "db"));
        copy_database(config, folder, &copy.0, Arc::clone(&spinner)).await?;
        spinner.set_message("writing the archive");
        archive.add_file(DATABASE, &copy.0)?;
    }
    for (name, path) in files_beside(folder).map_err(|error| unreadable(folder, &error))? {
        archive.add_file(&name, &path)?;
    }
    let key = environment.secret_key_location().into_file();
    let has_key = key.as_ref().is_some_and(|key| key.is_file());
    if options.with_secret_key {
        let key = key.as_ref().filter(|_| has_key).ok_or_else(|| {
            CommandError::failed("there is no file with the key of stored secrets; omit --with-secret-key")
        })?;
        archive.add_file(SECRET_KEY, key)?;
    }
    let manifest = archive.finish()?;
    drop(spinner);
    output::print_line(format!("{}: {}", options.file.display(), summary(&manifest)));
    if let Some(key) = key.filter(|_| has_key && !options.with_secret_key) {
        output::print_note(format!(
            "Stored secrets can be read only with the key in {}, which is not in the backup; store a copy of it elsewhere.",
            key.display()
        ));
    }
    Ok(())
}

async fn copy_database(
    config: &Config,
    folder: &Path,
    target: &Path,
    spinner: Arc<ProgressSpinner>,
) -> Result<(), CommandError> {
    if !folder.join(DATABASE).is_file() {
        return Err(no_database(folder));
    }
    let failed = |error| CommandError::failed(store_error(&error).to_string());
    let store = SqliteStore::open(folder, &config.store, parse_card).map_err(failed)?;
    let report = move |progress: CopyProgress| {
        let percent = progress.copied * 100 / progress.total.max(1);
        spinner.set_message(&format!("copying the database, {percent} %"));
    };
    let copied = store.copy_to(target, report).await.map_err(failed);
    store.close().await;
    copied
}

async fn restore(folder: &Path, options: &RestoreOptions) -> Result<(), CommandError> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(unreadable(folder, &error)),
    };
    if !is_empty {
        return Err(CommandError::failed(format!(
            "{} is not empty; stop its server, move the folder away, or name another with --data",
            folder.display()
        )));
    }
    let spinner = ProgressSpinner::new("comparing the backup with its checksums");
    let (file, target) = (options.file.clone(), folder.to_owned());
    let restored = tokio::task::spawn_blocking(move || unpack(&file, &target));
    let manifest = restored.await.map_err(|error| CommandError::failed(error.to_string()))??;
    drop(spinner);
    output::print_line(format!("{}: {}", folder.display(), summary(&manifest)));
    if manifest.files.iter().any(|file| file.path == SECRET_KEY) {
        output::print_note(format!(
            "The key to stored secrets is in {0}. Move it to the configuration folder, or set RIALTO_SECRET_KEY_FILE={0}",
            folder.join(SECRET_KEY).display()
        ));
    }
    if !manifest.files.iter().any(|file| file.path == DATABASE) {
        output::print_note("The backup has no database; restore the dump with pg_restore.");
    }
    Ok(())
}

/// Verifies all of an archive before the first file is written, and takes everything away again if that fails.
fn unpack(file: &Path, folder: &Path) -> Result<Manifest, CommandError> {
    archive::verify(file)?;
    private_files::make_folder(folder).map_err(|error| unreadable(folder, &error))?;
    let place = |name: &str| PathBuf::from(if name == DATABASE { UNFINISHED_DATABASE } else { name });
    let unpacked = archive::extract(file, folder, place).map_err(CommandError::from).and_then(|manifest| {
        if manifest.files.iter().any(|file| file.path == DATABASE) {
            fs::rename(folder.join(UNFINISHED_DATABASE), folder.join(DATABASE))
                .map_err(|error| unreadable(folder, &error))?;
        }
        archive::keep_record(folder, &manifest).map_err(|error| unreadable(folder, &error))?;
        Ok(manifest)
    });
    if unpacked.is_err() {
        clear_folder(folder);
    }
    unpacked
}

/// Removes all that was written to a folder that was empty before.
fn clear_folder(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let path = entry.path();
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        if let Err(error) = removed {
            tracing::warn!("{} could not be removed after a restore that failed: {error}", path.display());
        }
    }
}

async fn check(config: &Config, folder: &Path, as_json: bool) -> Result<(), CommandError> {
    let failed = |error| CommandError::failed(store_error(&error).to_string());
    let spinner = Arc::new(ProgressSpinner::new("checking"));
    let report = if let Some(url) = &config.store.url {
        let store = PostgresStore::open(url, &config.store, parse_card).await.map_err(failed)?;
        store.check(&|at| spinner.set_message(at)).await.map_err(failed)?
    } else {
        let (folder, shown) = (folder.to_owned(), Arc::clone(&spinner));
        let checking = tokio::task::spawn_blocking(move || {
            check_folder(&folder, parse_card, &|at| shown.set_message(at))
        });
        checking.await.map_err(|error| CommandError::failed(error.to_string()))?.map_err(failed)?
    };
    drop(spinner);
    print_report(&report, as_json)
}

fn print_report(report: &CheckReport, as_json: bool) -> Result<(), CommandError> {
    if as_json {
        let findings = report.findings().iter();
        let findings: Vec<_> =
            findings.map(|finding| json!({ "check": finding.check, "message": finding.message })).collect();
        output::print_json(&json!({
            "sound": report.count() == 0,
            "tasks": report.tasks,
            "auditRecords": report.audit_records,
            "findings": findings,
            "findingsTotal": report.count(),
        }));
    } else {
        for finding in report.findings() {
            output::print_line(format!("{:<12} {}", finding.check, output::sanitize(&finding.message)));
        }
    }
    if report.count() > 0 {
        return Err(CommandError::failed(format!(
            "{} problems were found; restore a backup with `rialto restore`, or copy the folder before you change it",
            report.count()
        )));
    }
    if !as_json {
        output::print_line(format!(
            "{} tasks and {} audit records, all unchanged",
            report.tasks, report.audit_records
        ));
    }
    Ok(())
}

/// A file that is removed when it is no longer needed.
struct TemporaryFile(PathBuf);

// === impl TemporaryFile ===

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // It was never made if the copy failed.
        let _ = fs::remove_file(&self.0);
    }
}

// === impl CommandError ===

impl From<ArchiveError> for CommandError {
    fn from(error: ArchiveError) -> Self {
        Self::failed(error.to_string())
    }
}

/// Policies and keys in the data folder, as names in an archive and paths. Lock files, tokens and files that a server makes anew are left out.
fn files_beside(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for name in FOLDERS {
        collect(&folder.join(name), name, 0, &mut found)?;
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_key =
            Path::new(&name).extension().is_some_and(|end| KEY_ENDINGS.iter().any(|key| end == *key));
        if is_key && entry.file_type()?.is_file() {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn collect(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (kind, file) = (entry.file_type()?, entry.file_name().to_string_lossy().into_owned());
        let name = format!("{prefix}/{file}");
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&entry.path(), &name, depth + 1, found)?;
        } else if kind.is_file() && !file.starts_with('.') {
            found.push((name, entry.path()));
        }
        if found.len() > MAX_FILES {
            let what = format!("there are more than {MAX_FILES} files in {}", folder.display());
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

fn summary(manifest: &Manifest) -> String {
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    format!("{} files, {bytes} bytes, as of {}", manifest.files.len(), manifest.created_at)
}

fn no_database(folder: &Path) -> CommandError {
    CommandError::failed(format!(
        "there is no database in {}; set the data folder with --data",
        folder.display()
    ))
}

fn unreadable(folder: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("{} cannot be read or written: {error}", folder.display()))
}
