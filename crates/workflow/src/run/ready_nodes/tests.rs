use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*};

use super::*;

/// A graph in which a node needs only earlier ones, with conditions among them.
fn any_plan() -> impl Strategy<Value = DependencyGraph> {
    let spot = (vec(any::<prop::sample::Index>(), 0..4), any::<bool>(), any::<bool>(), any::<bool>());
    vec(spot, 1..40).prop_map(|spots| {
        let mut plan = Vec::new();
        for (at, (needs, goes_on_after_failure, is_branch, answer)) in spots.into_iter().enumerate() {
            let needs: BTreeSet<usize> =
                if at == 0 { BTreeSet::new() } else { needs.iter().map(|need| need.index(at)).collect() };
            let needs: Vec<usize> = needs.into_iter().collect();
            let branches = needs.first().filter(|_| is_branch).map(|need| (*need, answer));
            let skipped_with = vec![needs.clone()];
            plan.push(DependencyNode {
                needs,
                skipped_with,
                branches: branches.into_iter().collect(),
                goes_on_after_failure,
            });
        }
        DependencyGraph(plan)
    })
}

/// Runs a graph to its end, each node with a random outcome, in a random order. Returns the progress of all nodes, and the order
/// in which they started.
fn run(
    plan: &DependencyGraph,
    fates: &[bool],
    order: &[prop::sample::Index],
) -> (Vec<NodeProgress>, Vec<usize>) {
    let mut standings = vec![NodeProgress::Open; plan.0.len()];
    let (mut began, mut busy) = (Vec::new(), Vec::new());
    let answers = |at: usize| Some(at.is_multiple_of(2));
    for pick in order.iter().cycle().take(10_000) {
        let moves: Vec<NodeTransition> = plan.transitions(&standings, answers).collect();
        for next in moves {
            match next {
                NodeTransition::Begin(at) => {
                    standings[at] = NodeProgress::Busy;
                    began.push(at);
                    busy.push(at);
                }
                NodeTransition::Leave(at) => standings[at] = NodeProgress::Left,
                NodeTransition::Lose(at, _) => standings[at] = NodeProgress::Lost,
            }
        }
        if busy.is_empty() {
            if plan.transitions(&standings, answers).next().is_none() {
                break;
            }
            continue;
        }
        let at = busy.swap_remove(pick.index(busy.len()));
        standings[at] = if fates[at % fates.len()] { NodeProgress::Done } else { NodeProgress::Failed };
    }
    (standings, began)
}

proptest! {
    #[test]
    fn every_graph_comes_to_its_end(
        plan in any_plan(),
        fates in vec(any::<bool>(), 1..40),
        order in vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let (standings, _) = run(&plan, &fates, &order);
        prop_assert!(standings.iter().all(|standing| standing.is_over()), "{standings:?}");
    }

    #[test]
    fn nothing_begins_before_what_it_needs_is_over_or_twice(
        plan in any_plan(),
        fates in vec(any::<bool>(), 1..40),
        order in vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let (standings, began) = run(&plan, &fates, &order);
        let distinct: BTreeSet<_> = began.iter().collect();
        prop_assert_eq!(distinct.len(), began.len());
        for (turn, at) in began.iter().enumerate() {
            for need in &plan.0[*at].needs {
                let before = began[..turn].contains(need);
                prop_assert!(before || matches!(standings[*need], NodeProgress::Left | NodeProgress::Lost));
            }
        }
    }

    #[test]
    fn what_needs_something_that_failed_is_lost_and_so_is_what_needs_that(
        plan in any_plan(),
        fates in vec(any::<bool>(), 1..40),
        order in vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let (standings, _) = run(&plan, &fates, &order);
        for (at, spot) in plan.0.iter().enumerate() {
            let breaks = |need: &usize| match standings[*need] {
                NodeProgress::Failed => !plan.0[*need].goes_on_after_failure,
                standing => standing == NodeProgress::Lost,
            };
            let is_lost = spot.needs.iter().any(breaks);
            prop_assert_eq!(standings[at] == NodeProgress::Lost, is_lost, "{}", at);
        }
    }

    #[test]
    fn what_needs_only_what_was_left_out_is_left_out(
        plan in any_plan(),
        fates in vec(any::<bool>(), 1..40),
        order in vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let (standings, _) = run(&plan, &fates, &order);
        for (at, spot) in plan.0.iter().enumerate() {
            if !spot.needs.is_empty() && spot.needs.iter().all(|need| standings[*need] == NodeProgress::Left) {
                prop_assert_eq!(standings[at], NodeProgress::Left);
            }
        }
    }
}

#[test]
fn the_branch_that_is_not_taken_is_left_out_and_what_joins_both_goes_on() {
    let spot = |needs: &[usize], branches: &[(usize, bool)]| DependencyNode {
        needs: needs.to_vec(),
        skipped_with: vec![needs.to_vec()],
        branches: branches.to_vec(),
        goes_on_after_failure: false,
    };
    let plan = DependencyGraph(vec![
        spot(&[], &[]),
        spot(&[0], &[(0, true)]),
        spot(&[0], &[(0, false)]),
        spot(&[1, 2], &[]),
    ]);
    let mut standings = [NodeProgress::Done, NodeProgress::Open, NodeProgress::Open, NodeProgress::Open];
    let moves: Vec<_> = plan.transitions(&standings, |_| Some(true)).collect();
    assert_eq!(moves, [NodeTransition::Begin(1), NodeTransition::Leave(2)]);
    standings[1..3].copy_from_slice(&[NodeProgress::Done, NodeProgress::Left]);
    let moves: Vec<_> = plan.transitions(&standings, |_| Some(true)).collect();
    assert_eq!(moves, [NodeTransition::Begin(3)]);
}

#[test]
fn nothing_runs_behind_an_approval_that_nobody_was_asked_for() {
    let text = "
nodes:
  fetch: { tool: t }
  check: { if: '{{ nodes.fetch.good }}', then: approve, else: refuse }
  approve: { type: approval, question: Really? }
  refuse: { tool: t }
  deploy: { tool: t, needs: approve, args: { x: '{{ nodes.fetch.x }}' } }
  told: { type: set, value: '{{ nodes.deploy ?? nodes.refuse }}' }
";
    let source = crate::read::DefinitionSource { text, name: "x", kind: None };
    let plan = DependencyGraph::from_workflow(&crate::read::workflow(source).unwrap());
    use NodeProgress::{Done, Left, Open};
    let next = |standings: &[NodeProgress]| plan.transitions(standings, |_| Some(false)).collect::<Vec<_>>();
    assert_eq!(
        next(&[Done, Done, Open, Open, Open, Open]),
        [NodeTransition::Leave(2), NodeTransition::Begin(3)]
    );
    assert_eq!(next(&[Done, Done, Left, Done, Open, Open]), [NodeTransition::Leave(4)]);
    assert_eq!(next(&[Done, Done, Left, Done, Left, Open]), [NodeTransition::Begin(5)]);
}
