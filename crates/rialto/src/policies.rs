//! Where policies are kept: Cedar files in the data folder, to read and edit with any editor.

use std::{
    io,
    path::{Path, PathBuf},
};

use rialto_model::agent::Agent;
use rialto_policy::{Policy, PolicyError, Problem, STARTER, Source, allow_agent};

/// The starter policy's file.
const STARTER_FILE: &str = "starter.cedar";

/// Where policies come from.
#[derive(Clone, Debug)]
pub(crate) enum Policies {
    /// All `.cedar` files of a folder; the starter policy is written there when the folder is new.
    Folder(PathBuf),
    /// One file, instead of everything else.
    File(PathBuf),
    /// The starter policy, in memory.
    Starter,
}

// === impl Policies ===

impl Policies {
    /// Makes the folder with the starter policy, unless it is there.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let Self::Folder(folder) = self else { return Ok(()) };
        if folder.exists() {
            return Ok(());
        }
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join(STARTER_FILE), STARTER)
    }

    /// Reads and compiles them.
    pub(crate) fn load(&self) -> Result<Policy, PolicyError> {
        Policy::parse(&self.sources()?)
    }

    /// The texts, by file name.
    pub(crate) fn sources(&self) -> Result<Vec<Source>, PolicyError> {
        match self {
            Self::Starter => Ok(vec![Source { name: STARTER_FILE.to_owned(), text: STARTER.to_owned() }]),
            Self::File(file) => Ok(vec![source(file)?]),
            Self::Folder(folder) => {
                let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
                let mut files: Vec<PathBuf> = entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| path.extension().is_some_and(|extension| extension == "cedar"))
                    .collect();
                files.sort();
                files.iter().map(|file| source(file)).collect()
            }
        }
    }

    /// Writes a permit for every skill of an agent. Answers the file.
    pub(crate) fn allow(&self, agent: &Agent) -> io::Result<PathBuf> {
        let Self::Folder(folder) = self else {
            return Err(io::Error::other("these policies are not kept in a folder that could be written to"));
        };
        let permit = allow_agent(&agent.id);
        let file = folder.join(permit.name);
        let comment = format!("// Lets everybody call the agent at {}\n", agent.url.escape_default());
        // Never a half-written policy: the file appears whole.
        let draft = file.with_extension("draft");
        std::fs::write(&draft, comment + &permit.text)?;
        std::fs::rename(&draft, &file)?;
        Ok(file)
    }

    /// Takes the permit of an agent away, if there is one.
    pub(crate) fn forget(&self, agent: &Agent) -> io::Result<()> {
        let Self::Folder(folder) = self else { return Ok(()) };
        match std::fs::remove_file(folder.join(allow_agent(&agent.id).name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

pub(crate) fn source(file: &Path) -> Result<Source, PolicyError> {
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let name = file
        .file_name()
        .map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    Ok(Source { name, text })
}

fn unreadable(path: &Path, error: &io::Error) -> PolicyError {
    PolicyError(vec![Problem { place: path.display().to_string(), message: error.to_string(), help: None }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folder_holds_the_starter_policy_and_an_edited_one_stays_edited() {
        let folder = tempfile::tempdir().unwrap();
        let policies = Policies::Folder(folder.path().join("policies"));
        policies.prepare().unwrap();
        assert!(policies.load().unwrap().ids().contains(&"starter-discover".to_owned()));
        std::fs::write(folder.path().join("policies/starter.cedar"), "// mine").unwrap();
        policies.prepare().unwrap();
        assert!(policies.load().unwrap().ids().is_empty());
    }
}
