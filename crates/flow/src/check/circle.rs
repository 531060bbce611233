//! Nodes that wait for each other.

use crate::{
    definition::Place,
    problem::{Code, Problems},
    read::Draft,
};

/// More circles than this are not told.
const MOST: usize = 20;

/// One node needs another.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) node: usize,
    pub(super) needs: usize,
    pub(super) place: Place,
    pub(super) tie: Tie,
}

/// Why one node needs another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    /// It says so.
    Named,
    /// It stands behind it.
    After,
    /// It is a branch of it.
    Branch,
    /// It refers to it, in these words.
    Looks(String),
}

/// How far a node is looked into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    /// On the way that is being followed.
    Open,
    Done,
}

/// Tells of every circle, and takes the edge out that is to blame for it, until none is left.
pub(super) fn break_all(drafts: &[Draft], edges: &mut Vec<Edge>, problems: &mut Problems) {
    for _ in 0..MOST {
        let Some(circle) = find(drafts.len(), edges) else { return };
        let blamed = blame(&circle, edges);
        if let Some(edge) = blamed.and_then(|at| edges.get(at)) {
            tell(drafts, &circle, edge, edges, problems);
        }
        match blamed {
            Some(at) => drop(edges.remove(at)),
            None => return,
        }
    }
    // Whatever is left is of no use to anybody.
    if find(drafts.len(), edges).is_some() {
        edges.clear();
    }
}

/// The edges of a circle, each leading to the node that the next leads from.
fn find(nodes: usize, edges: &[Edge]) -> Option<Vec<usize>> {
    let mut from: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (at, edge) in edges.iter().enumerate() {
        if let Some(list) = from.get_mut(edge.node) {
            list.push(at);
        }
    }
    let mut marks = vec![Mark::New; nodes];
    (0..nodes).find_map(|node| follow(node, &from, edges, &mut marks))
}

fn follow(begin: usize, from: &[Vec<usize>], edges: &[Edge], marks: &mut [Mark]) -> Option<Vec<usize>> {
    if marks[begin] != Mark::New {
        return None;
    }
    // Each node on the way, and which of its edges comes next.
    let mut way = vec![(begin, 0)];
    let mut taken: Vec<usize> = Vec::new();
    marks[begin] = Mark::Open;
    while let Some((node, next)) = way.last_mut() {
        let Some(at) = from[*node].get(*next).copied() else {
            marks[*node] = Mark::Done;
            way.pop();
            taken.pop();
            continue;
        };
        *next += 1;
        let needs = edges[at].needs;
        match marks[needs] {
            Mark::Done => {}
            Mark::New => {
                marks[needs] = Mark::Open;
                taken.push(at);
                way.push((needs, 0));
            }
            Mark::Open => {
                taken.push(at);
                let first = taken.iter().position(|at| edges[*at].node == needs)?;
                return Some(taken.split_off(first));
            }
        }
    }
    None
}

/// A reference is to blame before a name, a name before a branch, and that before the order of steps; of equals the last in the file.
fn blame(circle: &[usize], edges: &[Edge]) -> Option<usize> {
    let weight = |edge: &Edge| match edge.tie {
        Tie::Looks(_) => 3,
        Tie::Named => 2,
        Tie::Branch => 1,
        Tie::After => 0,
    };
    circle.iter().copied().max_by_key(|at| edges.get(*at).map(|edge| (weight(edge), edge.place)))
}

fn tell(drafts: &[Draft], circle: &[usize], blamed: &Edge, edges: &[Edge], problems: &mut Problems) {
    let name = |number: usize| drafts.get(number).map_or("", |draft| draft.id.as_str());
    // From the node that is to blame, along what each waits for, back to it.
    let turn =
        circle.iter().position(|at| edges.get(*at).is_some_and(|edge| edge.node == blamed.node)).unwrap_or(0);
    let turned = circle.iter().cycle().skip(turn).take(circle.len());
    let mut names: Vec<&str> = turned.filter_map(|at| edges.get(*at)).map(|edge| name(edge.node)).collect();
    names.push(name(blamed.node));
    if let Tie::Looks(text) = &blamed.tie {
        let (node, later) = (name(blamed.node), name(blamed.needs));
        let way = names.get(1..).unwrap_or_default().join(" → ");
        let message = format!(
            "\"{node}\" looks at {text}, but \"{later}\" comes later ({way}); it can look only at what is done before"
        );
        problems.add(blamed.place, Code::BadReference, message);
        return;
    }
    let message = match names.as_slice() {
        [only, _] => format!("\"{only}\" waits for itself"),
        _ => format!("these nodes wait for each other: {}", names.join(" → ")),
    };
    problems.add(blamed.place, Code::Cycle, message);
}
