//! Name of a skill as a tool.
//!
//! The canonical name is `<agentSlug>.<skillId>`; clients that cannot bear a dot know it as
//! `a2a_<agentSlug>_<skillId>`. Both always work.

/// Lowercase ASCII letters and digits; each run of anything else becomes one `_`; none at the ends.
pub fn slug(text: &str) -> String {
    let mut slug = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('_') {
            slug.push('_');
        }
    }
    if slug.ends_with('_') {
        slug.pop();
    }
    slug
}

/// The slug of an agent's name; an agent whose name has no letter at all is `agent`.
pub fn agent_slug(name: &str) -> String {
    let slug = slug(name);
    if slug.is_empty() { "agent".to_owned() } else { slug }
}

/// `<agentSlug>.<skillId>`, the skill's id exactly as the card spells it.
pub fn canonical(agent_slug: &str, skill_id: &str) -> String {
    [agent_slug, ".", skill_id].concat()
}

/// `a2a_<agentSlug>_<slug of the skill's id>`.
pub fn legacy(agent_slug: &str, skill_id: &str) -> String {
    ["a2a_", agent_slug, "_", &slug(skill_id)].concat()
}

/// A text as one segment of a path: what could mean something there is percent-encoded.
pub fn in_path(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// A name without dots and whatever else some clients refuse: each other character becomes `_`.
pub fn plain(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

/// `wanted`, or `wanted_2`, `wanted_3`, … : the first that is not taken.
pub fn unused(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(wanted) {
        return wanted.to_owned();
    }
    (2_u64..)
        .map(|n| format!("{wanted}_{n}"))
        .find(|name| !is_taken(name))
        .unwrap_or_else(|| wanted.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_in_a_segment_means_anything_to_a_path() {
        assert_eq!(in_path("a-Z_0.9~"), "a-Z_0.9~");
        assert_eq!(in_path("../a?b#c %/ä"), "..%2Fa%3Fb%23c%20%25%2F%C3%A4");
    }

    #[test]
    fn the_names_of_the_specification_hold() {
        for (agent, skill, tool, alias) in [
            ("Vercel Ops", "deploy", "vercel_ops.deploy", "a2a_vercel_ops_deploy"),
            ("code-reviewer", "review", "code_reviewer.review", "a2a_code_reviewer_review"),
            ("Linear (prod)", "create-issue", "linear_prod.create-issue", "a2a_linear_prod_create_issue"),
        ] {
            assert_eq!(canonical(&agent_slug(agent), skill), tool);
            assert_eq!(legacy(&agent_slug(agent), skill), alias);
        }
    }

    #[test]
    fn the_second_agent_of_a_name_gets_a_number() {
        assert_eq!(unused("a", |name| name == "a"), "a_2");
        assert_eq!(unused("a", |name| ["a", "a_2"].contains(&name)), "a_3");
    }

    proptest! {
        #[test]
        fn a_slug_is_made_of_words(text in ".*") {
            let slug = slug(&text);
            prop_assert!(slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
            prop_assert!(!slug.starts_with('_') && !slug.ends_with('_') && !slug.contains("__"));
            prop_assert_eq!(super::slug(&slug), slug);
        }
    }
}
