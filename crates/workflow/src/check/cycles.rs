//! Nodes that wait for each other.

use crate::{
    definition::SourcePosition,
    problem::{DefinitionProblems, ProblemCode},
    read::NodeDraft,
};

/// Maximum number of cycles that are reported.
const MAX_REPORTED_CYCLES: usize = 20;

/// Dependency of one node on another.
#[derive(Clone, Debug)]
pub(super) struct DependencyEdge {
    pub(super) node: usize,
    pub(super) needs: usize,
    pub(super) place: SourcePosition,
    pub(super) dependency: DependencyKind,
}

/// Why one node needs another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DependencyKind {
    /// Named in `depends_on`.
    Named,
    /// A later step in a sequence.
    After,
    /// A branch of a condition.
    Branch,
    /// A reference, as it is written in the file.
    Looks(String),
}

/// Progress of the search at a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    /// On the way that is being followed.
    Open,
    Done,
}

/// Reports all cycles, and removes the edge to blame from each until none is left.
pub(super) fn break_cycles(
    drafts: &[NodeDraft],
    edges: &mut Vec<DependencyEdge>,
    problems: &mut DefinitionProblems,
) {
    for _ in 0..MAX_REPORTED_CYCLES {
        let Some(circle) = find_cycle(drafts.len(), edges) else { return };
        let blamed = edge_to_blame(&circle, edges);
        if let Some(edge) = blamed.and_then(|at| edges.get(at)) {
            report_cycle(drafts, &circle, edge, edges, problems);
        }
        match blamed {
            Some(at) => drop(edges.remove(at)),
            None => return,
        }
    }
    // The remaining edges are not part of any valid order.
    if find_cycle(drafts.len(), edges).is_some() {
        edges.clear();
    }
}

/// The edges of a circle, each leading to the node that the next leads from.
fn find_cycle(nodes: usize, edges: &[DependencyEdge]) -> Option<Vec<usize>> {
    let mut from: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (at, edge) in edges.iter().enumerate() {
        if let Some(list) = from.get_mut(edge.node) {
            list.push(at);
        }
    }
    let mut marks = vec![VisitState::New; nodes];
    (0..nodes).find_map(|node| find_cycle_from(node, &from, edges, &mut marks))
}

fn find_cycle_from(
    begin: usize,
    from: &[Vec<usize>],
    edges: &[DependencyEdge],
    marks: &mut [VisitState],
) -> Option<Vec<usize>> {
    if marks[begin] != VisitState::New {
        return None;
    }
    // Each node on the way, and which of its edges comes next.
    let mut way = vec![(begin, 0)];
    let mut taken: Vec<usize> = Vec::new();
    marks[begin] = VisitState::Open;
    while let Some((node, next)) = way.last_mut() {
        let Some(at) = from[*node].get(*next).copied() else {
            marks[*node] = VisitState::Done;
            way.pop();
            taken.pop();
            continue;
        };
        *next += 1;
        let needs = edges[at].needs;
        match marks[needs] {
            VisitState::Done => {}
            VisitState::New => {
                marks[needs] = VisitState::Open;
                taken.push(at);
                way.push((needs, 0));
            }
            VisitState::Open => {
                taken.push(at);
                let first = taken.iter().position(|at| edges[*at].node == needs)?;
                return Some(taken.split_off(first));
            }
        }
    }
    None
}

/// A reference is to blame before a name, a name before a branch, and that before the order of steps; of equals the last in the file.
fn edge_to_blame(circle: &[usize], edges: &[DependencyEdge]) -> Option<usize> {
    let weight = |edge: &DependencyEdge| match edge.dependency {
        DependencyKind::Looks(_) => 3,
        DependencyKind::Named => 2,
        DependencyKind::Branch => 1,
        DependencyKind::After => 0,
    };
    circle.iter().copied().max_by_key(|at| edges.get(*at).map(|edge| (weight(edge), edge.place)))
}

fn report_cycle(
    drafts: &[NodeDraft],
    circle: &[usize],
    blamed: &DependencyEdge,
    edges: &[DependencyEdge],
    problems: &mut DefinitionProblems,
) {
    let name = |number: usize| drafts.get(number).map_or("", |draft| draft.id.as_str());
    // From the node that is to blame, along what each waits for, back to it.
    let turn =
        circle.iter().position(|at| edges.get(*at).is_some_and(|edge| edge.node == blamed.node)).unwrap_or(0);
    let turned = circle.iter().cycle().skip(turn).take(circle.len());
    let mut names: Vec<&str> = turned.filter_map(|at| edges.get(*at)).map(|edge| name(edge.node)).collect();
    names.push(name(blamed.node));
    if let DependencyKind::Looks(text) = &blamed.dependency {
        let (node, later) = (name(blamed.node), name(blamed.needs));
        let way = names.get(1..).unwrap_or_default().join(" → ");
        let message = format!(
            "\"{node}\" refers to {text}, but \"{later}\" comes later ({way}); it can refer only to earlier nodes"
        );
        problems.add(blamed.place, ProblemCode::BadReference, message);
        return;
    }
    let message = match names.as_slice() {
        [only, _] => format!("\"{only}\" waits for itself"),
        _ => format!("these nodes wait for each other: {}", names.join(" → ")),
    };
    problems.add(blamed.place, ProblemCode::Cycle, message);
}
