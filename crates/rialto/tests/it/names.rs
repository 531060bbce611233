//! Names of types: one name for one thing, so that a search for it finds its definition.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Names that every crate may use for its own.
const SHARED_NAMES: [&str; 2] = ["Config", "Error"];

#[test]
fn no_two_types_have_the_same_name() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in fs::read_dir(crates).unwrap() {
        collect_sources(&folder.unwrap().path().join("src"), &mut files);
    }
    let mut places: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in &files {
        for name in fs::read_to_string(file).unwrap().lines().filter_map(type_name) {
            places.entry(name.to_owned()).or_default().push(file.clone());
        }
    }
    assert!(places.len() > 1_000, "only {} types were found", places.len());
    places.retain(|name, places| places.len() > 1 && !SHARED_NAMES.contains(&name.as_str()));
    assert!(places.is_empty(), "types with the same name: {places:#?}");
}

/// Sources below a folder, without tests.
fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests");
        if path.is_dir() && !is_test {
            collect_sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
            files.push(path);
        }
    }
}

/// Name of the type that a line defines.
fn type_name(line: &str) -> Option<&str> {
    let visible = line.trim_start().strip_prefix("pub").map_or(line.trim_start(), |rest| {
        rest.strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest)
            .trim_start()
    });
    let keywords = ["struct ", "enum ", "trait ", "union "];
    let rest = keywords.iter().find_map(|keyword| visible.strip_prefix(keyword))?;
    let end =
        rest.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| name.starts_with(char::is_uppercase))
}
