//! `rialto workflow schema|validate|graph`: workflows as files, without a server, a store or an agent.

use std::{io::Read as _, path::Path};

use rialto_flow::{
    definition::Workflow,
    graph::{self, Marks},
    problem::Problems,
    read::{self, LARGEST, Source},
    schema,
};
use serde_json::{Value, json};

use crate::{
    cli::{GraphWorkflow, ValidateWorkflow, WorkflowFile},
    output::{self, Trouble},
};

/// A file that was read, or what is wrong with it.
struct Read {
    file: String,
    text: String,
    workflow: Result<Workflow, Problems>,
}

pub(crate) fn run(command: WorkflowFile) -> Result<(), Trouble> {
    match command {
        WorkflowFile::Schema => {
            output::json(&schema::schema());
            Ok(())
        }
        WorkflowFile::Validate(options) => validate(&options),
        WorkflowFile::Graph(options) => draw(&options),
    }
}

fn validate(options: &ValidateWorkflow) -> Result<(), Trouble> {
    let read = options.files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()?;
    if options.listing.json {
        output::json(&read.iter().map(report).collect::<Vec<_>>());
    } else {
        read.iter().for_each(show);
    }
    let wrong = read.iter().filter(|read| read.workflow.is_err()).count();
    match (wrong, read.len()) {
        (0, _) => Ok(()),
        (_, 1) => Err(Trouble::other("the workflow does not hold up")),
        (wrong, all) => Err(Trouble::other(format!("{wrong} of {all} workflows do not hold up"))),
    }
}

fn draw(options: &GraphWorkflow) -> Result<(), Trouble> {
    let read = open(&options.file)?;
    match &read.workflow {
        Ok(workflow) => {
            let picture = graph::draw(workflow, options.format.format(), &Marks::new());
            output::line(picture.trim_end());
            Ok(())
        }
        Err(_) => {
            show(&read);
            Err(Trouble::other("the workflow does not hold up"))
        }
    }
}

fn open(path: &Path) -> Result<Read, Trouble> {
    let file = path.display().to_string();
    let text = text(path).map_err(|error| Trouble::usage(format!("{file}: {error}")))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let workflow = read::workflow(Source { text: &text, name: &name, kind: None });
    Ok(Read { file, text, workflow })
}

/// The whole text, or as much as tells that it is too much.
fn text(path: &Path) -> std::io::Result<String> {
    let input: Box<dyn std::io::Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path)?)
    };
    let mut text = String::new();
    input.take(LARGEST as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn show(read: &Read) {
    match &read.workflow {
        Ok(workflow) => {
            let nodes = match workflow.nodes.len() {
                1 => "1 node".to_owned(),
                many => format!("{many} nodes"),
            };
            output::line(format!("{}: {} holds up, {nodes}", read.file, workflow.name));
        }
        Err(problems) => {
            for line in problems.render(&read.file, &read.text).lines() {
                output::note(output::printable(line));
            }
        }
    }
}

fn report(read: &Read) -> Value {
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
