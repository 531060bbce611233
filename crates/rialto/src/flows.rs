//! Workflows that the configuration names, and addresses of their own.

pub(crate) mod hooks;

use std::path::{Path, PathBuf};

use rialto_engine::Engine;
use rialto_flow::run::{Book, Given, Runner};
use rialto_model::{
    flow::FlowStatus,
    ids::{OrgId, ProjectId, Scope, is_slug},
};

use crate::{
    config::{Config, WorkflowFile},
    program::BuildError,
};

/// The ends of names of files that are definitions.
const ENDS: [&str; 3] = ["yaml", "yml", "json"];

/// Makes the configured definitions what the files say. With `is_whole`, those that have vanished are removed.
pub(crate) async fn configure(
    config: &Config,
    engine: &Engine,
    runner: &Runner,
    is_whole: bool,
) -> Result<(), BuildError> {
    let mut named: Vec<(Scope, String)> = Vec::new();
    for (file, scope) in files(config)? {
        let given = given(&file, &scope)?;
        let added =
            runner.book().add(engine, given).await.map_err(|error| wrong(&file, &error.to_string()))?;
        if added.status == FlowStatus::Draft {
            tracing::info!("{} is a draft: it runs only to be tried out", added.name);
        }
        named.push((scope, added.name));
    }
    if is_whole {
        forget_others(engine, runner, &named).await?;
    }
    Ok(())
}

/// Whether all that the files say holds up.
pub(crate) fn check(config: &Config) -> Result<(), BuildError> {
    for (file, scope) in files(config)? {
        Book::check(&given(&file, &scope)?).map_err(|error| wrong(&file, &error.to_string()))?;
    }
    Ok(())
}

/// What a file gives.
fn given(file: &Path, scope: &Scope) -> Result<Given, BuildError> {
    let text = std::fs::read_to_string(file).map_err(|error| wrong(file, &error.to_string()))?;
    let (name, by) = (stem(file), "local".into());
    Ok(Given {
        scope: scope.clone(),
        text,
        name,
        kind: None,
        by,
        token: None,
        status: None,
        configured: true,
    })
}

fn wrong(file: &Path, reason: &str) -> BuildError {
    BuildError::Deployed(format!("{}: {reason}", file.display()))
}

async fn forget_others(
    engine: &Engine,
    runner: &Runner,
    named: &[(Scope, String)],
) -> Result<(), BuildError> {
    let trouble = |error: rialto_flow::run::BookError| BuildError::Deployed(error.to_string());
    for known in runner.book().all().await.map_err(trouble)? {
        let is_named = named.iter().any(|(scope, name)| *scope == known.scope && *name == known.name);
        if known.configured && !is_named {
            tracing::info!("workflow {} is no longer configured and was removed", known.name);
            runner.book().remove(engine, &known.scope, &known.name, true).await.map_err(trouble)?;
        }
    }
    Ok(())
}

/// The files that the configuration names, with where each belongs.
pub(crate) fn files(config: &Config) -> Result<Vec<(PathBuf, Scope)>, BuildError> {
    let mut files = Vec::new();
    if let Some(folder) = &config.flows.folder {
        let unreadable =
            |error: std::io::Error| BuildError::File { path: folder.display().to_string(), source: error };
        let entries = std::fs::read_dir(folder).map_err(unreadable)?;
        let mut found: Vec<PathBuf> = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(unreadable)?;
        found.retain(|path| path.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known)));
        found.sort();
        files.extend(found.into_iter().map(|path| (path, Scope::default())));
    }
    for (at, wanted) in config.workflows.iter().enumerate() {
        files.push((wanted.file.clone(), scope_of(at, wanted)?));
    }
    Ok(files)
}

fn scope_of(at: usize, wanted: &WorkflowFile) -> Result<Scope, BuildError> {
    let standard = Scope::default();
    let slug = |key: &str, given: Option<&String>| match given {
        Some(name) if !is_slug(name) => {
            let reason = format!("\"{name}\" must be letters, digits, `-` and `_`");
            Err(BuildError::Deployed(format!("workflows[{at}].{key}: {reason}")))
        }
        given => Ok(given.cloned()),
    };
    Ok(Scope {
        org: slug("org", wanted.org.as_ref())?.map_or(standard.org, OrgId::from),
        project: slug("project", wanted.project.as_ref())?.map_or(standard.project, ProjectId::from),
    })
}

/// What a definition is called that does not say so itself.
pub(crate) fn stem(file: &Path) -> String {
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
