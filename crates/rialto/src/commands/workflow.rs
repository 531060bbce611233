//! `rialto workflow schema|validate|graph`: workflows as files, without a server, a store or an agent.

use std::{io::Read as _, path::Path};

use rialto_workflow::{
    definition::Workflow,
    graph::{self, NodeMarkers},
    problem::DefinitionProblems,
    read::{self, DefinitionSource, MAX_FILE_BYTES},
    schema,
};
use serde_json::{Value, json};

use crate::{
    cli::{GraphWorkflowOptions, ValidateWorkflowOptions, WorkflowFileCommand},
    output::{self, CommandError},
};

/// A file that was read, or what is wrong with it.
struct ParsedFile {
    file: String,
    text: String,
    workflow: Result<Workflow, DefinitionProblems>,
}

pub(crate) fn run(command: WorkflowFileCommand) -> Result<(), CommandError> {
    match command {
        WorkflowFileCommand::Schema => {
            output::print_json(&schema::schema());
            Ok(())
        }
        WorkflowFileCommand::Validate(options) => validate(&options),
        WorkflowFileCommand::Graph(options) => draw(&options),
    }
}

fn validate(options: &ValidateWorkflowOptions) -> Result<(), CommandError> {
    let read = options.files.iter().map(|file| read_file(file)).collect::<Result<Vec<_>, _>>()?;
    if options.listing.json {
        output::print_json(&read.iter().map(json_report).collect::<Vec<_>>());
    } else {
        read.iter().for_each(print_result);
    }
    let wrong = read.iter().filter(|read| read.workflow.is_err()).count();
    match (wrong, read.len()) {
        (0, _) => Ok(()),
        (_, 1) => Err(CommandError::failed("the workflow is not valid")),
        (wrong, all) => Err(CommandError::failed(format!("{wrong} of {all} workflows are not valid"))),
    }
}

fn draw(options: &GraphWorkflowOptions) -> Result<(), CommandError> {
    let read = read_file(&options.file)?;
    match &read.workflow {
        Ok(workflow) => {
            let picture = graph::draw(workflow, options.format.format(), &NodeMarkers::new());
            output::print_line(picture.trim_end());
            Ok(())
        }
        Err(_) => {
            print_result(&read);
            Err(CommandError::failed("the workflow is not valid"))
        }
    }
}

fn read_file(path: &Path) -> Result<ParsedFile, CommandError> {
    let file = path.display().to_string();
    let text = read_text(path).map_err(|error| CommandError::usage(format!("{file}: {error}")))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let workflow = read::workflow(DefinitionSource { text: &text, name: &name, kind: None });
    Ok(ParsedFile { file, text, workflow })
}

/// Reads a text up to the size limit.
fn read_text(path: &Path) -> std::io::Result<String> {
    let input: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let mut text = String::new();
    input.take(MAX_FILE_BYTES as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn print_result(read: &ParsedFile) {
    match &read.workflow {
        Ok(workflow) => {
            let nodes = match workflow.nodes.len() {
                1 => "1 node".to_owned(),
                many => format!("{many} nodes"),
            };
            output::print_line(format!("{}: {} is valid, {nodes}", read.file, workflow.name));
        }
        Err(problems) => {
            for line in problems.render(&read.file, &read.text).lines() {
                output::print_note(output::sanitize(line));
            }
        }
    }
}

fn json_report(read: &ParsedFile) -> Value {
    match &read.workflow {
        Ok(workflow) => json!({
            "file": read.file,
            "valid": true,
            "name": workflow.name,
            "kind": workflow.kind,
            "status": workflow.status,
            "nodes": workflow.nodes.len(),
            "errors": [],
        }),
        Err(problems) => {
            json!({ "file": read.file, "valid": false, "errors": problems.iter().collect::<Vec<_>>() })
        }
    }
}
