//! Full-text search for the skills of a directory.

use std::sync::Arc;

use rialto_routing::text_index::{TextIndex, TextIndexBuilder};
pub use rialto_routing::text_index::{TextMatch, edit_distance};

use crate::directory::Directory;

/// Search index of the listed skills of one directory.
pub struct Index {
    directory: Arc<Directory>,
    text: TextIndex,
}

// === impl Index ===

impl Index {
    /// Builds the index of all listed skills of a directory.
    pub fn of(directory: &Arc<Directory>) -> Self {
        let mut reader = TextIndexBuilder::default();
        directory.listed().for_each(|entry| reader.add(&entry.agent, &entry.skill));
        Self { directory: Arc::clone(directory), text: reader.finish() }
    }

    /// The directory that it was built from.
    pub const fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The skills that fit a question, best first, by their places in the directory's list.
    pub fn find(&self, question: &str) -> Vec<TextMatch> {
        self.text.find(question)
    }
}

#[cfg(test)]
mod tests {
    use rialto_model::{card::Skill, ids::Scope};
    use rialto_testkit::agents::{agent, skill};

    use super::*;

    fn about(id: &str, description: &str, tags: &[&str]) -> Skill {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Skill { description: description.to_owned(), tags, ..skill(id) }
    }

    fn index() -> Index {
        let weather = agent("Weather", vec![about("forecast", "The weather of the next days", &["city"])]);
        let ops = agent(
            "Ops",
            vec![
                about("deploy", "Puts a version of a site on its servers", &["release"]),
                about("rollback", "Goes back to the version before", &["release", "undo"]),
                about("status", "Tells about deployments, weather permitting", &[]),
            ],
        );
        let rows = [Arc::new(weather), Arc::new(ops)];
        Index::of(&Arc::new(Directory::build(1, &Scope::default(), rows.iter())))
    }

    fn found(index: &Index, question: &str) -> Vec<String> {
        let name = |hit: TextMatch| index.directory().at(hit.place).map(|entry| entry.canonical.clone());
        index.find(question).into_iter().filter_map(name).collect()
    }

    #[test]
    fn what_stands_in_a_name_counts_more_than_what_is_said_about_it() {
        let index = index();
        assert_eq!(found(&index, "weather"), ["weather.forecast", "ops.status"]);
        assert_eq!(found(&index, "release"), ["ops.rollback", "ops.deploy"], "the shorter one first");
        assert_eq!(found(&index, "undo a release"), ["ops.rollback", "ops.deploy"], "all words before one");
        assert_eq!(found(&index, ""), Vec::<String>::new());
        assert_eq!(found(&index, "!?"), Vec::<String>::new());
    }

    #[test]
    fn slips_and_beginnings_find_what_was_meant() {
        let index = index();
        assert_eq!(found(&index, "forcast"), ["weather.forecast"]);
        assert_eq!(found(&index, "wether")[..1], ["weather.forecast"]);
        assert_eq!(found(&index, "rollb"), ["ops.rollback"]);
        assert_eq!(found(&index, "versoin before")[..1], ["ops.rollback"]);
        assert_eq!(found(&index, "zz"), Vec::<String>::new());
    }

    #[test]
    fn the_same_question_has_the_same_answer() {
        let (one, other) = (index(), index());
        for question in ["weather", "release version", "status of the forecast"] {
            assert_eq!(one.find(question), other.find(question));
        }
    }
}
