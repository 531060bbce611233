//! One node: what every sort of it may say, and what sort it is.

use std::time::Duration;

use super::{
    MOST_NODES, does,
    fields::Fields,
    notes::{Notes, Seen, did_you_mean},
    tree::{Member, Tree, Value},
};
use crate::{
    condition::Condition,
    definition::{Backoff, Does, NodeId, Place, Retry},
    keys::{ACTION, BACKOFF, Key, MOST_ATTEMPTS, NODE, RETRY, SORTS, Sort, is_spelt},
    problem::Code,
};

/// A node that is not tied to the others yet.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) id: NodeId,
    pub(crate) place: Place,
    /// Nothing when it could not be read; what was wrong is noted.
    pub(crate) does: Option<Does>,
    /// What it says it depends on; nothing when it does not say.
    pub(crate) depends_on: Option<Vec<(NodeId, Place)>>,
    /// Those that come before it because they stand before it.
    pub(crate) after: Vec<NodeId>,
    /// The branches it chooses between.
    pub(crate) branches: Vec<(NodeId, Place)>,
    /// What it looks at.
    pub(crate) seen: Vec<Seen>,
    pub(crate) common: Common,
}

/// What every sort of node may say.
#[derive(Debug, Default)]
pub(crate) struct Common {
    pub(crate) when: Option<Condition>,
    pub(crate) retry: Retry,
    pub(crate) timeout: Option<Duration>,
    pub(crate) goes_on_after_failure: bool,
}

/// What the `type` of a node says.
enum Said {
    /// That `nodeId` says it.
    Action,
    Sort(&'static Sort),
}

/// Reads `nodes`, a list or an object by their ids.
pub(super) fn nodes(tree: &Tree, notes: &mut Notes) -> Vec<Draft> {
    match &tree.value {
        Value::List(items) => {
            few(tree, items, notes).iter().filter_map(|item| node(item, None, notes)).collect()
        }
        Value::Object(members) => few(tree, members, notes)
            .iter()
            .filter_map(|member| node(&member.tree, Some((&member.name, member.place)), notes))
            .collect(),
        _ => {
            notes.wrong_type(tree, "nodes", "a list, or an object of nodes by their ids").unwrap_or_default()
        }
    }
}

/// As many as there may be, and at least one.
pub(crate) fn few<'a, T>(tree: &Tree, all: &'a [T], notes: &mut Notes) -> &'a [T] {
    if all.is_empty() {
        notes.problems.add(
            tree.place,
            Code::BadValue,
            "nothing is to be done; a workflow has at least one node",
        );
    }
    if all.len() > MOST_NODES {
        notes.problems.add(tree.place, Code::BadValue, format!("a workflow has at most {MOST_NODES} nodes"));
    }
    all.get(..MOST_NODES).unwrap_or(all)
}

/// Reads one node. In an object its key is its id.
pub(super) fn node(tree: &Tree, called: Option<(&str, Place)>, notes: &mut Notes) -> Option<Draft> {
    let members = notes.object(tree, "a node")?;
    let sort = sort(tree.place, members, notes);
    let fields = fields(tree.place, members, NODE, sort, notes);
    let id = id(&fields, called, notes);
    let common = common(&fields, notes);
    let depends_on = fields.get("depends_on").map(|tree| notes.ids(tree, "depends_on"));
    let read = sort.and_then(|sort| does::read(sort, &fields, notes));
    let branches = sort.map(|_| does::branches(&fields, notes)).unwrap_or_default();
    let seen = std::mem::take(&mut notes.seen);
    let (id, place) = id?;
    Some(Draft { id, place, does: read, depends_on, after: Vec::new(), branches, seen, common })
}

/// The members of a node, flat or in its `config`. Of a sort that nobody knows only what all have in common.
pub(super) fn fields<'a>(
    place: Place,
    members: &'a [Member],
    table: &'static [Key],
    sort: Option<&'static Sort>,
    notes: &mut Notes,
) -> Fields<'a> {
    let Some(sort) = sort else {
        let mut ignored = Notes::default();
        return Fields::of(place, members, &[table], &mut ignored);
    };
    let mut fields = Fields::of(place, members, &[table, sort.keys], notes);
    if let Some(config) = fields.get("config")
        && let Some(members) = notes.object(config, "config")
    {
        fields.take(members, &[sort.keys], notes);
    }
    fields
}

/// What sort of node it is: what it says, or what its keys tell.
pub(super) fn sort(place: Place, members: &[Member], notes: &mut Notes) -> Option<&'static Sort> {
    let find = |name| members.iter().find(|member| is_spelt(name, &member.name)).map(|member| &member.tree);
    match (find("node_id"), find("type")) {
        (Some(id), None) => sort_of(id, notes),
        (Some(id), Some(tree)) => match (sort_of(id, notes), said(tree, notes)?) {
            (Some(sort), Said::Sort(other)) if sort.word != other.word => {
                let message =
                    format!("\"nodeId\" says something else than \"type\", which is {}", other.word);
                notes.bad(place, Code::BadValue, message)
            }
            (sort, _) => sort,
        },
        (None, Some(tree)) => match said(tree, notes)? {
            Said::Sort(sort) => Some(sort),
            Said::Action => {
                notes.bad(tree.place, Code::MissingKey, "an action says what it does: write its \"nodeId\"")
            }
        },
        (None, None) => told(members).or_else(|| {
            let words: Vec<&str> = SORTS.iter().map(|sort| sort.word).collect();
            let message =
                format!("this node does not say what it does; give it a \"type\": {}", words.join(", "));
            notes.bad(place, Code::UnknownKind, message)
        }),
    }
}

fn said(tree: &Tree, notes: &mut Notes) -> Option<Said> {
    match &tree.value {
        Value::Text(text) if text.text == ACTION => Some(Said::Action),
        _ => sort_of(tree, notes).map(Said::Sort),
    }
}

/// The sort by its word.
fn sort_of(tree: &Tree, notes: &mut Notes) -> Option<&'static Sort> {
    let word = notes.text(tree, "the type of a node")?.text.as_str();
    Sort::called(word).or_else(|| {
        let words = || SORTS.iter().map(|sort| sort.word);
        let hint = did_you_mean(word, words());
        let known = words().collect::<Vec<_>>().join(", ");
        let message = format!("nobody knows a node of type \"{word}\", there are {known}{hint}");
        notes.bad(tree.place, Code::UnknownKind, message)
    })
}

/// The sort that the keys tell.
fn told(members: &[Member]) -> Option<&'static Sort> {
    let config = members.iter().find(|member| member.name == "config").map(|member| &member.tree.value);
    let inner = if let Some(Value::Object(inner)) = config { inner.as_slice() } else { &[] };
    let tells = |sort: &Sort, member: &Member| {
        let key = sort.key(&member.name).filter(|_| member.name != "name");
        key.is_some_and(|key| sort.told_by.contains(&key.name))
    };
    SORTS.iter().find(|sort| members.iter().chain(inner).any(|member| tells(sort, member)))
}

fn id(fields: &Fields<'_>, called: Option<(&str, Place)>, notes: &mut Notes) -> Option<(NodeId, Place)> {
    let said = fields.get("id");
    match (called, said) {
        (None, None) => {
            notes.bad(fields.place, Code::MissingKey, "this node has no \"id\"; others refer to it by that")
        }
        (None, Some(tree)) => notes.name(tree, "id").map(|name| (NodeId::from(name.as_str()), fields.place)),
        (Some((name, place)), said) => {
            if said.is_some_and(|tree| notes.name(tree, "id").is_some_and(|said| said != name)) {
                return notes.bad(
                    place,
                    Code::BadValue,
                    format!("this node is called \"{name}\" here and otherwise inside"),
                );
            }
            if !super::notes::is_name(name) {
                let message =
                    format!("\"{name}\" is no id: it has letters, digits, \"_\" and \"-\", at most 64");
                return notes.bad(place, Code::BadValue, message);
            }
            Some((NodeId::from(name), place))
        }
    }
}

/// What every sort of node may say.
pub(crate) fn common(fields: &Fields<'_>, notes: &mut Notes) -> Common {
    let when = fields.get("when").and_then(|tree| notes.condition(tree, "when"));
    let retry = fields.get("retry").and_then(|tree| retry(tree, notes)).unwrap_or_default();
    let timeout = fields.get("timeout").and_then(|tree| notes.duration(tree, "timeout"));
    let goes_on = fields.get("continue_on_failure").and_then(|tree| notes.flag(tree, "continue_on_failure"));
    Common { when, retry, timeout, goes_on_after_failure: goes_on.unwrap_or(false) }
}

fn retry(tree: &Tree, notes: &mut Notes) -> Option<Retry> {
    if let Value::Number(_) = tree.value {
        let attempts = notes.count(tree, "retry", MOST_ATTEMPTS)?;
        return Some(Retry { attempts, ..Retry::default() });
    }
    let fields = Fields::of_tree(tree, "retry", RETRY, notes)?;
    let attempts = match fields.get("attempts") {
        Some(tree) => notes.count(tree, "attempts", MOST_ATTEMPTS)?,
        None => {
            return notes.bad(tree.place, Code::MissingKey, "\"retry\" says how many \"attempts\" there are");
        }
    };
    let backoff = fields.get("backoff").and_then(|tree| backoff(tree, notes)).unwrap_or_default();
    Some(Retry { attempts, backoff })
}

fn backoff(tree: &Tree, notes: &mut Notes) -> Option<Backoff> {
    let mut backoff = Backoff::default();
    if !matches!(tree.value, Value::Object(_)) {
        backoff.first = notes.duration(tree, "backoff")?;
        return Some(Backoff { longest: backoff.longest.max(backoff.first), ..backoff });
    }
    let fields = Fields::of_tree(tree, "backoff", BACKOFF, notes)?;
    let mut length = |name, otherwise| match fields.get(name) {
        Some(tree) => notes.duration(tree, name),
        None => Some(otherwise),
    };
    let (first, longest) = (length("first", backoff.first), length("longest", backoff.longest));
    if let Some(tree) = fields.get("factor") {
        backoff.factor = notes.factor(tree, "factor")?;
    }
    // A first pause that is longer than the longest means that none is shorter.
    Some(Backoff { first: first?, longest: longest?.max(first?), ..backoff })
}
