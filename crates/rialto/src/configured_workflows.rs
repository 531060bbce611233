//! Workflows that the configuration names, and addresses of their own.

pub(crate) mod http_triggers;

use std::path::{Path, PathBuf};

use rialto_engine::Engine;
use rialto_model::{
    flow::FlowStatus,
    ids::{OrgId, ProjectId, Scope, is_slug},
};
use rialto_workflow::run::{NewDefinition, WorkflowDefinitions, WorkflowRunner};

use crate::{
    app::BuildError,
    config::{Config, WorkflowFileConfig},
};

/// The ends of names of files that are definitions.
const FILE_EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Stores the definitions of the configured files. With `is_whole`, rows of missing files are removed.
pub(crate) async fn configure(
    config: &Config,
    engine: &Engine,
    runner: &WorkflowRunner,
    is_whole: bool,
) -> Result<(), BuildError> {
    let mut named: Vec<(Scope, String)> = Vec::new();
    for (file, scope) in definition_files(config)? {
        let given = read_definition(&file, &scope)?;
        let added = runner
            .definitions()
            .add(engine, given)
            .await
            .map_err(|error| invalid_file(&file, &error.to_string()))?;
        if added.status == FlowStatus::Draft {
            tracing::info!("{} is a draft: it runs only to be tried out", added.name);
        }
        named.push((scope, added.name));
    }
    if is_whole {
        remove_unconfigured(engine, runner, &named).await?;
    }
    Ok(())
}

/// Validates all configured files.
pub(crate) fn check(config: &Config) -> Result<(), BuildError> {
    for (file, scope) in definition_files(config)? {
        WorkflowDefinitions::check(&read_definition(&file, &scope)?)
            .map_err(|error| invalid_file(&file, &error.to_string()))?;
    }
    Ok(())
}

/// Definition in a file.
fn read_definition(file: &Path, scope: &Scope) -> Result<NewDefinition, BuildError> {
    let text = std::fs::read_to_string(file).map_err(|error| invalid_file(file, &error.to_string()))?;
    let (name, by) = (name_from_file(file), "local".into());
    Ok(NewDefinition {
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

fn invalid_file(file: &Path, reason: &str) -> BuildError {
    BuildError::Deployed(format!("{}: {reason}", file.display()))
}

async fn remove_unconfigured(
    engine: &Engine,
    runner: &WorkflowRunner,
    named: &[(Scope, String)],
) -> Result<(), BuildError> {
    let trouble = |error: rialto_workflow::run::DefinitionError| BuildError::Deployed(error.to_string());
    for known in runner.definitions().all().await.map_err(trouble)? {
        let is_named = named.iter().any(|(scope, name)| *scope == known.scope && *name == known.name);
        if known.configured && !is_named {
            tracing::info!("workflow {} is no longer configured and was removed", known.name);
            runner.definitions().remove(engine, &known.scope, &known.name, true).await.map_err(trouble)?;
        }
    }
    Ok(())
}

/// The files that the configuration names, with where each belongs.
pub(crate) fn definition_files(config: &Config) -> Result<Vec<(PathBuf, Scope)>, BuildError> {
    let mut files = Vec::new();
    if let Some(folder) = &config.flows.folder {
        let unreadable =
            |error: std::io::Error| BuildError::File { path: folder.display().to_string(), source: error };
        let entries = std::fs::read_dir(folder).map_err(unreadable)?;
        let mut found: Vec<PathBuf> = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()
            .map_err(unreadable)?;
        found.retain(|path| {
            path.extension().is_some_and(|end| FILE_EXTENSIONS.iter().any(|known| end == *known))
        });
        found.sort();
        files.extend(found.into_iter().map(|path| (path, Scope::default())));
    }
    for (at, wanted) in config.workflows.iter().enumerate() {
        files.push((wanted.file.clone(), scope_at(at, wanted)?));
    }
    Ok(files)
}

fn scope_at(at: usize, wanted: &WorkflowFileConfig) -> Result<Scope, BuildError> {
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

/// Default name of a definition: the file's name.
pub(crate) fn name_from_file(file: &Path) -> String {
    file.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
