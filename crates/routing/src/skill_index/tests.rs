use proptest::prelude::*;
use rialto_testkit::agents::{agent, skill};

use super::*;

fn described_skill(id: &str, description: &str, tags: &[&str]) -> Skill {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    Skill { description: description.to_owned(), tags, ..skill(id) }
}

fn index() -> SkillIndex {
    let agents = [
        agent("Reviewer", vec![described_skill("review", "Reviews pull requests", &["typescript", "code"])]),
        agent(
            "Tester",
            vec![
                described_skill("lint", "Looks for bad style", &["typescript"]),
                described_skill("run_tests", "Runs integration tests of a feature", &["qa"]),
            ],
        ),
        agent("Clicker", vec![described_skill("click", "Runs tests in a browser", &["QA", "web"])]),
    ];
    SkillIndex::new(7, agents.map(Arc::new).into())
}

fn work(work_type: &str, description: &str, required: &[&str]) -> WorkDescription {
    let required_skills = required.iter().map(|item| (*item).to_owned()).collect();
    let (work_type, description) = (work_type.to_owned(), description.to_owned());
    WorkDescription { work_type, description, required_skills, ..WorkDescription::default() }
}

fn slugs(fits: &SkillMatches) -> Vec<(&str, &str)> {
    fits.best.iter().map(|fit| (fit.agent.slug.as_str(), fit.skill.id.as_str())).collect()
}

#[test]
fn a_required_skill_must_match_an_id_a_name_or_a_tag() {
    let index = index();
    assert_eq!(
        slugs(&index.find_matches(&work("", "", &["typescript"]), 9)),
        [("reviewer", "review"), ("tester", "lint")]
    );
    let both = index.find_matches(&work("", "", &["TypeScript", "Run Tests"]), 9);
    assert_eq!(slugs(&both), [("tester", "lint")]);
    assert_eq!(
        both.best[0].reasons,
        ["a tag of skill lint is \"TypeScript\"", "the id of skill run_tests is \"Run Tests\""]
    );
    assert!(index.find_matches(&work("", "", &["typescript", "cobol"]), 9).best.is_empty());
}

#[test]
fn a_type_of_work_is_looked_for_among_tags_in_any_case() {
    let fits = index().find_matches(&work("qa", "", &[]), 9);
    assert_eq!(slugs(&fits), [("tester", "run_tests"), ("clicker", "click")]);
    assert!(fits.best.iter().all(|fit| (fit.score - 1.0).abs() < 1e-9), "{fits:?}");
    assert_eq!(index().find_matches(&work("review", "", &[]), 9).best.len(), 0, "an id is no tag");
}

#[test]
fn a_description_is_compared_by_its_words() {
    let fits = index().find_matches(&work("", "run the integration tests of the new feature", &[]), 9);
    assert_eq!(slugs(&fits)[0], ("tester", "run_tests"));
    assert!(fits.best[0].score > 1.2 * fits.best[1].score, "{fits:?}");
    assert!(
        fits.best[0].reasons[0].starts_with("skill run_tests is about 5 of the 7 words"),
        "{:?}",
        fits.best[0]
    );
}

#[test]
fn of_what_was_asked_for_each_part_counts_its_share() {
    let index = index();
    let asked = work("qa", "integration tests", &["typescript"]);
    let fits = index.find_matches(&asked, 9);
    assert_eq!(slugs(&fits), [("tester", "run_tests"), ("reviewer", "review")]);
    assert!(fits.best[0].score > 0.8 && fits.best[0].score <= 1.0, "{fits:?}");
    assert!((fits.best[1].score - 0.5).abs() < 1e-9, "only what is required: {fits:?}");
    let few = index.find_matches(&asked, 1);
    assert_eq!((slugs(&few), few.more), (vec![("tester", "run_tests")], 1));
}

#[test]
fn an_agent_without_any_match_is_not_listed() {
    assert!(index().find_matches(&work("gardening", "roses", &[]), 9).best.is_empty());
    assert!(index().find_matches(&WorkDescription::default(), 9).best.is_empty());
    assert!(SkillIndex::new(1, Vec::new()).find_matches(&work("qa", "tests", &["qa"]), 9).best.is_empty());
}

#[test]
fn an_agent_that_does_not_accept_the_media_types_comes_last_with_the_reason() {
    let takes = |id: &str, modes: &[&str]| Skill {
        input_modes: modes.iter().map(|mode| (*mode).to_owned()).collect(),
        ..described_skill(id, "Reads what is sent", &["ocr"])
    };
    let agents = [
        agent("Words", vec![takes("read", &["text/plain"])]),
        agent("Pictures", vec![takes("words", &["text/plain"]), takes("look", &["image/*"])]),
        agent("Anything", vec![takes("any", &["*/*"])]),
    ];
    let index = SkillIndex::new(1, agents.map(Arc::new).into());
    let asked = |modes: &[&str]| WorkDescription {
        input_modes: modes.iter().map(|mode| (*mode).to_owned()).collect(),
        ..work("ocr", "", &[])
    };
    assert_eq!(
        slugs(&index.find_matches(&asked(&[]), 9)),
        [("words", "read"), ("pictures", "words"), ("anything", "any")],
        "who says nothing about it gets the best by words"
    );
    let fits = index.find_matches(&asked(&["Image/PNG; q=1"]), 9);
    assert_eq!(slugs(&fits), [("pictures", "look"), ("anything", "any"), ("words", "read")]);
    let lacks: Vec<Option<&str>> = fits.best.iter().map(|fit| fit.lacks.as_deref()).collect();
    assert_eq!(lacks, [None, None, Some("its skill read takes text/plain, not image/png")]);
    assert!(fits.best[0].reasons.iter().any(|reason| reason == "skill look takes image/png"));
    let both = index.find_matches(&asked(&["image/png", "text/plain"]), 9);
    assert_eq!(slugs(&both)[0], ("anything", "any"), "one skill must take all of it");
    assert_eq!(slugs(&index.find_matches(&asked(&["image/png"]), 1)), [("pictures", "look")]);
}

proptest! {
    #[test]
    fn names_that_are_the_same_have_the_same_number(name in "[ a-zA-Z_\\-\u{c4}\u{e4}\u{df}\t]{0,12}") {
        let other = name.replace('-', "_").to_lowercase();
        prop_assert_eq!(is_same_label(&name, &other), label_hash(&name) == label_hash(&other), "{} {}", name, other);
    }

    #[test]
    fn a_score_is_between_zero_and_one_and_always_the_same(
        work_type in "(qa|web|code|)", words in "(run|tests|browser|style|of|x| ){0,8}", required in "(typescript|qa|)",
    ) {
        let index = index();
        let asked = work(&work_type, &words, &[&required]);
        let (one, other) = (index.find_matches(&asked, 9), index.find_matches(&asked, 9));
        for fit in &one.best {
            prop_assert!(fit.score > 0.0 && fit.score <= 1.0, "{fit:?}");
            prop_assert!(required.is_empty() || fit.agent.card.skills.iter().any(|skill| matching_label(skill, &required).is_some()));
        }
        prop_assert_eq!(slugs(&one), slugs(&other));
    }
}
