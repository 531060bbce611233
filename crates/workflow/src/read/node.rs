//! Reader of one node: common keys and the type.

use std::time::Duration;

use super::{
    MAX_NODES,
    diagnostics::{Diagnostics, NodeReference, did_you_mean},
    fields::ObjectFields,
    node_kinds,
    tree::{ObjectMember, SourceTree, SourceValue},
};
use crate::{
    condition::Condition,
    definition::{NodeAction, NodeId, RetryBackoff, RetryPolicy, SourcePosition},
    problem::ProblemCode,
    schema_keys::{
        ACTION, BACKOFF, MAX_ATTEMPTS, NODE, NODE_KINDS, NodeKind, RETRY, SchemaKey, is_spelling_of,
    },
};

/// A node that is not tied to the others yet.
#[derive(Debug)]
pub(crate) struct NodeDraft {
    pub(crate) id: NodeId,
    pub(crate) place: SourcePosition,
    /// Nothing when it could not be read; what was wrong is noted.
    pub(crate) action: Option<NodeAction>,
    /// Explicit dependencies; none if the key is absent.
    pub(crate) depends_on: Option<Vec<(NodeId, SourcePosition)>>,
    /// Steps before it in a sequence.
    pub(crate) after: Vec<NodeId>,
    /// The branches it chooses between.
    pub(crate) branches: Vec<(NodeId, SourcePosition)>,
    /// References to nodes.
    pub(crate) seen: Vec<NodeReference>,
    pub(crate) common: CommonFields,
}

/// Keys that all types of nodes have.
#[derive(Debug, Default)]
pub(crate) struct CommonFields {
    pub(crate) when: Option<Condition>,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Option<Duration>,
    pub(crate) goes_on_after_failure: bool,
}

/// Value of the key `type`.
enum DeclaredType {
    /// `action`: `nodeId` decides the type.
    Action,
    Sort(&'static NodeKind),
}

/// Reads `read_nodes`, a list or an object by their ids.
pub(super) fn read_nodes(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Vec<NodeDraft> {
    match &tree.value {
        SourceValue::List(items) => limit_nodes(tree, items, diagnostics)
            .iter()
            .filter_map(|item| read_node(item, None, diagnostics))
            .collect(),
        SourceValue::Object(members) => limit_nodes(tree, members, diagnostics)
            .iter()
            .filter_map(|member| read_node(&member.tree, Some((&member.name, member.place)), diagnostics))
            .collect(),
        _ => diagnostics
            .report_type(tree, "nodes", "a list, or an object of nodes by their ids")
            .unwrap_or_default(),
    }
}

/// As many as there may be, and at least one.
pub(crate) fn limit_nodes<'a, T>(tree: &SourceTree, all: &'a [T], diagnostics: &mut Diagnostics) -> &'a [T] {
    if all.is_empty() {
        diagnostics.problems.add(
            tree.place,
            ProblemCode::BadValue,
            "nothing is to be done; a workflow has at least one node",
        );
    }
    if all.len() > MAX_NODES {
        diagnostics.problems.add(
            tree.place,
            ProblemCode::BadValue,
            format!("a workflow has at most {MAX_NODES} nodes"),
        );
    }
    all.get(..MAX_NODES).unwrap_or(all)
}

/// Reads one node. In an object its key is its id.
pub(super) fn read_node(
    tree: &SourceTree,
    called: Option<(&str, SourcePosition)>,
    diagnostics: &mut Diagnostics,
) -> Option<NodeDraft> {
    let members = diagnostics.expect_object(tree, "a node")?;
    let kind = node_kind(tree.place, members, diagnostics);
    let fields = node_fields(tree.place, members, NODE, kind, diagnostics);
    let id = read_id(&fields, called, diagnostics);
    let common = read_common(&fields, diagnostics);
    let depends_on = fields.get("depends_on").map(|tree| diagnostics.ids(tree, "depends_on"));
    let read = kind.and_then(|kind| node_kinds::read_action(kind, &fields, diagnostics));
    let branches = kind.map(|_| node_kinds::condition_branches(&fields, diagnostics)).unwrap_or_default();
    let seen = std::mem::take(&mut diagnostics.seen);
    let (id, place) = id?;
    Some(NodeDraft { id, place, action: read, depends_on, after: Vec::new(), branches, seen, common })
}

/// Members of a node, flat or in its `config`. An unknown type has only the common keys.
pub(super) fn node_fields<'a>(
    place: SourcePosition,
    members: &'a [ObjectMember],
    table: &'static [SchemaKey],
    kind: Option<&'static NodeKind>,
    diagnostics: &mut Diagnostics,
) -> ObjectFields<'a> {
    let Some(kind) = kind else {
        let mut ignored = Diagnostics::default();
        return ObjectFields::from_members(place, members, &[table], &mut ignored);
    };
    let mut fields = ObjectFields::from_members(place, members, &[table, kind.keys], diagnostics);
    if let Some(config) = fields.get("config")
        && let Some(members) = diagnostics.expect_object(config, "config")
    {
        fields.add_members(members, &[kind.keys], diagnostics);
    }
    fields
}

/// Type of a node: explicit, or derived from its keys.
pub(super) fn node_kind(
    place: SourcePosition,
    members: &[ObjectMember],
    diagnostics: &mut Diagnostics,
) -> Option<&'static NodeKind> {
    let find =
        |name| members.iter().find(|member| is_spelling_of(name, &member.name)).map(|member| &member.tree);
    match (find("node_id"), find("type")) {
        (Some(id), None) => kind_by_type(id, diagnostics),
        (Some(id), Some(tree)) => match (kind_by_type(id, diagnostics), declared_type(tree, diagnostics)?) {
            (Some(kind), DeclaredType::Sort(other)) if kind.word != other.word => {
                let message = format!("\"nodeId\" contradicts \"type\", which is {}", other.word);
                diagnostics.report(place, ProblemCode::BadValue, message)
            }
            (kind, _) => kind,
        },
        (None, Some(tree)) => match declared_type(tree, diagnostics)? {
            DeclaredType::Sort(kind) => Some(kind),
            DeclaredType::Action => {
                diagnostics.report(tree.place, ProblemCode::MissingKey, "an action needs a \"nodeId\"")
            }
        },
        (None, None) => kind_by_keys(members).or_else(|| {
            let words: Vec<&str> = NODE_KINDS.iter().map(|kind| kind.word).collect();
            let message = format!("this node has no \"type\"; add one: {}", words.join(", "));
            diagnostics.report(place, ProblemCode::UnknownKind, message)
        }),
    }
}

fn declared_type(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<DeclaredType> {
    match &tree.value {
        SourceValue::Text(text) if text.text == ACTION => Some(DeclaredType::Action),
        _ => kind_by_type(tree, diagnostics).map(DeclaredType::Sort),
    }
}

/// The sort by its word.
fn kind_by_type(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<&'static NodeKind> {
    let word = diagnostics.text(tree, "the type of a node")?.text.as_str();
    NodeKind::find_by_word(word).or_else(|| {
        let words = || NODE_KINDS.iter().map(|kind| kind.word);
        let hint = did_you_mean(word, words());
        let known = words().collect::<Vec<_>>().join(", ");
        let message = format!("unknown node type \"{word}\", known are {known}{hint}");
        diagnostics.report(tree.place, ProblemCode::UnknownKind, message)
    })
}

/// Type that the keys imply.
fn kind_by_keys(members: &[ObjectMember]) -> Option<&'static NodeKind> {
    let config = members.iter().find(|member| member.name == "config").map(|member| &member.tree.value);
    let inner = if let Some(SourceValue::Object(inner)) = config { inner.as_slice() } else { &[] };
    let tells = |kind: &NodeKind, member: &ObjectMember| {
        let key = kind.key(&member.name).filter(|_| member.name != "name");
        key.is_some_and(|key| kind.told_by.contains(&key.name))
    };
    NODE_KINDS.iter().find(|kind| members.iter().chain(inner).any(|member| tells(kind, member)))
}

fn read_id(
    fields: &ObjectFields<'_>,
    called: Option<(&str, SourcePosition)>,
    diagnostics: &mut Diagnostics,
) -> Option<(NodeId, SourcePosition)> {
    let said = fields.get("id");
    match (called, said) {
        (None, None) => diagnostics.report(
            fields.place,
            ProblemCode::MissingKey,
            "this node has no \"id\"; others refer to it by that",
        ),
        (None, Some(tree)) => {
            diagnostics.name(tree, "id").map(|name| (NodeId::from(name.as_str()), fields.place))
        }
        (Some((name, place)), said) => {
            if said.is_some_and(|tree| diagnostics.name(tree, "id").is_some_and(|said| said != name)) {
                return diagnostics.report(
                    place,
                    ProblemCode::BadValue,
                    format!("this node is named \"{name}\" here and differently inside"),
                );
            }
            if !super::diagnostics::is_name(name) {
                let message =
                    format!("\"{name}\" is no id: it has letters, digits, \"_\" and \"-\", at most 64");
                return diagnostics.report(place, ProblemCode::BadValue, message);
            }
            Some((NodeId::from(name), place))
        }
    }
}

/// Reads the keys that all types of nodes have.
pub(crate) fn read_common(fields: &ObjectFields<'_>, diagnostics: &mut Diagnostics) -> CommonFields {
    let when = fields.get("when").and_then(|tree| diagnostics.condition(tree, "when"));
    let retry = fields.get("retry").and_then(|tree| read_retry(tree, diagnostics)).unwrap_or_default();
    let timeout = fields.get("timeout").and_then(|tree| diagnostics.duration(tree, "timeout"));
    let goes_on = fields
        .get("continue_on_failure")
        .and_then(|tree| diagnostics.expect_bool(tree, "continue_on_failure"));
    CommonFields { when, retry, timeout, goes_on_after_failure: goes_on.unwrap_or(false) }
}

fn read_retry(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<RetryPolicy> {
    if let SourceValue::Number(_) = tree.value {
        let attempts = diagnostics.expect_count(tree, "retry", MAX_ATTEMPTS)?;
        return Some(RetryPolicy { attempts, ..RetryPolicy::default() });
    }
    let fields = ObjectFields::from_tree(tree, "retry", RETRY, diagnostics)?;
    let attempts = match fields.get("attempts") {
        Some(tree) => diagnostics.expect_count(tree, "attempts", MAX_ATTEMPTS)?,
        None => {
            return diagnostics.report(tree.place, ProblemCode::MissingKey, "\"retry\" needs \"attempts\"");
        }
    };
    let backoff = fields.get("backoff").and_then(|tree| read_backoff(tree, diagnostics)).unwrap_or_default();
    Some(RetryPolicy { attempts, backoff })
}

fn read_backoff(tree: &SourceTree, diagnostics: &mut Diagnostics) -> Option<RetryBackoff> {
    let mut backoff = RetryBackoff::default();
    if !matches!(tree.value, SourceValue::Object(_)) {
        backoff.first = diagnostics.duration(tree, "backoff")?;
        return Some(RetryBackoff { longest: backoff.longest.max(backoff.first), ..backoff });
    }
    let fields = ObjectFields::from_tree(tree, "backoff", BACKOFF, diagnostics)?;
    let mut length = |name, otherwise| match fields.get(name) {
        Some(tree) => diagnostics.duration(tree, name),
        None => Some(otherwise),
    };
    let (first, longest) = (length("first", backoff.first), length("longest", backoff.longest));
    if let Some(tree) = fields.get("factor") {
        backoff.factor = diagnostics.expect_factor(tree, "factor")?;
    }
    // A first pause that is longer than the longest means that none is shorter.
    Some(RetryBackoff { first: first?, longest: longest?.max(first?), ..backoff })
}
