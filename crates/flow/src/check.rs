//! Drafts of nodes, tied together and looked over as a whole.
//!
//! A node needs those it names, those it looks at, the condition that it is a branch of, and those it comes after. Of circles the
//! reference is to blame, if there is one: whoever looks at what comes later has mistaken the order, not the plan.

mod circle;
mod never;

use std::collections::BTreeMap;

use self::circle::{Edge, Tie};
use crate::{
    definition::{Node, NodeId, Place},
    problem::{Code, Problems},
    read::{
        Draft, MOST_NODES,
        notes::{Seen, did_you_mean},
    },
    template::Template,
};

/// S0 refers to a node of this name that it never shows: the agent that a run is given.
const AGENT_REF: &str = "agent-ref";
const AGENT: &str = "{{ $trigger.agentCardId ?? $trigger.agent }}";

/// The drafts by their ids, and the ties between them.
struct Web<'a> {
    drafts: &'a [Draft],
    numbers: BTreeMap<NodeId, usize>,
    edges: Vec<Edge>,
}

/// Makes nodes of drafts, and tells what is wrong with them together. `looked_at` is what the workflow's output refers to.
pub(crate) fn link(mut drafts: Vec<Draft>, looked_at: &[Seen], problems: &mut Problems) -> Vec<Node> {
    if drafts.len() > MOST_NODES {
        let place = drafts.first().map(|draft| draft.place).unwrap_or_default();
        problems.add(place, Code::BadValue, format!("a workflow has at most {MOST_NODES} nodes"));
        return Vec::new();
    }
    add_agent_ref(&mut drafts, looked_at);
    let mut web = Web { drafts: &drafts, numbers: BTreeMap::new(), edges: Vec::new() };
    web.number(problems);
    web.tie(problems);
    for seen in looked_at.iter().filter(|seen| !web.numbers.contains_key(&seen.node)) {
        web.no_such(seen, problems);
    }
    circle::break_all(&drafts, &mut web.edges, problems);
    never::tell(&drafts, &web.edges, problems);
    let edges = web.edges;
    nodes(drafts, &edges)
}

/// The agent that a run is given, for those who look at it.
fn add_agent_ref(drafts: &mut Vec<Draft>, looked_at: &[Seen]) {
    let is_there = drafts.iter().any(|draft| draft.id.as_str() == AGENT_REF);
    let seen = drafts.iter().flat_map(|draft| &draft.seen).chain(looked_at);
    let Some(place) = seen.filter(|seen| seen.node.as_str() == AGENT_REF).map(|seen| seen.place).min() else {
        return;
    };
    let Some(agent) = Template::parse(AGENT).ok().filter(|_| !is_there) else { return };
    let draft = Draft {
        id: NodeId::from(AGENT_REF),
        place,
        does: Some(crate::definition::Does::AgentRef { agent }),
        depends_on: None,
        after: Vec::new(),
        branches: Vec::new(),
        seen: Vec::new(),
        common: crate::read::Common::default(),
    };
    drafts.insert(0, draft);
}

fn nodes(drafts: Vec<Draft>, edges: &[Edge]) -> Vec<Node> {
    let ids: Vec<NodeId> = drafts.iter().map(|draft| draft.id.clone()).collect();
    let mut needs: Vec<Vec<NodeId>> = vec![Vec::new(); ids.len()];
    for edge in edges {
        if !needs[edge.node].contains(&ids[edge.needs]) {
            needs[edge.node].push(ids[edge.needs].clone());
        }
    }
    let made = drafts.into_iter().zip(needs).filter_map(|(draft, needs)| {
        let runs_after_skipped = draft.runs_after_skipped();
        let crate::read::Common { when, retry, timeout, goes_on_after_failure } = draft.common;
        Some(Node {
            id: draft.id,
            needs,
            does: draft.does?,
            when,
            retry,
            timeout,
            goes_on_after_failure,
            runs_after_skipped,
            place: draft.place,
        })
    });
    made.collect()
}

// === impl Draft ===

impl Draft {
    /// It only comes after others: it neither named nor looks at any.
    fn runs_after_skipped(&self) -> bool {
        !self.after.is_empty() && self.depends_on.is_none() && self.seen.is_empty()
    }
}

// === impl Web ===

impl Web<'_> {
    fn number(&mut self, problems: &mut Problems) {
        for (number, draft) in self.drafts.iter().enumerate() {
            match self.numbers.get(&draft.id).and_then(|first| self.drafts.get(*first)) {
                None => drop(self.numbers.insert(draft.id.clone(), number)),
                Some(first) => {
                    let message = format!("another node is called \"{}\" too, at {}", draft.id, first.place);
                    problems.add(draft.place, Code::DuplicateId, message);
                }
            }
        }
    }

    fn tie(&mut self, problems: &mut Problems) {
        let mut branch_of: BTreeMap<&NodeId, &NodeId> = BTreeMap::new();
        for (number, draft) in self.drafts.iter().enumerate() {
            for (id, place) in draft.depends_on.iter().flatten() {
                if let Some(needs) = self.find(id, *place, problems) {
                    self.edges.push(Edge { node: number, needs, place: *place, tie: Tie::Named });
                }
            }
            for id in &draft.after {
                if let Some(needs) = self.numbers.get(id).copied() {
                    self.edges.push(Edge { node: number, needs, place: draft.place, tie: Tie::After });
                }
            }
            for (id, place) in &draft.branches {
                if let Some(first) = branch_of.insert(id, &draft.id) {
                    let message =
                        format!("\"{id}\" is a branch of \"{first}\" already; a node is a branch once");
                    problems.add(*place, Code::BadValue, message);
                } else if let Some(node) = self.find(id, *place, problems) {
                    self.edges.push(Edge { node, needs: number, place: *place, tie: Tie::Branch });
                }
            }
            for seen in &draft.seen {
                self.look(number, seen, problems);
            }
        }
    }

    fn look(&mut self, number: usize, seen: &Seen, problems: &mut Problems) {
        match self.numbers.get(&seen.node).copied() {
            None => self.no_such(seen, problems),
            Some(needs) if needs == number => {
                let message =
                    format!("\"{}\" looks at itself; it can look only at what is done before", seen.node);
                problems.add(seen.place, Code::BadReference, message);
            }
            Some(needs) => {
                let tie = Tie::Looks(seen.text.clone());
                self.edges.push(Edge { node: number, needs, place: seen.place, tie });
            }
        }
    }

    fn find(&self, id: &NodeId, place: Place, problems: &mut Problems) -> Option<usize> {
        let found = self.numbers.get(id).copied();
        if found.is_none() {
            let hint = did_you_mean(id.as_str(), self.numbers.keys().map(NodeId::as_str));
            problems.add(place, Code::UnknownNode, format!("there is no node \"{id}\"{hint}"));
        }
        found
    }

    fn no_such(&self, seen: &Seen, problems: &mut Problems) {
        let hint = did_you_mean(seen.node.as_str(), self.numbers.keys().map(NodeId::as_str));
        let message = format!("{} leads nowhere: there is no node \"{}\"{hint}", seen.text, seen.node);
        problems.add(seen.place, Code::BadReference, message);
    }
}
