//! Programs that only some of the servers on one data folder may run.

use crate::harness::{placement, rialto::Rialto};

fn fresh() -> Rialto {
    Rialto::fresh().with("PATH", "/usr/bin:/bin")
}

#[test]
fn a_call_is_passed_on_to_a_node_that_may_run_its_program() {
    let rialto = fresh();
    placement::check_pins([&rialto, &rialto]);
}

#[test]
fn a_singleton_runs_on_one_node_and_moves_when_that_is_killed() {
    let rialto = fresh();
    placement::check_singleton([&rialto, &rialto]);
}

#[test]
fn a_stdio_server_on_another_node_can_be_called_asked_and_cancelled() {
    let rialto = fresh();
    placement::check_stdio_server([&rialto, &rialto]);
}

#[test]
fn a_call_whose_node_is_killed_ends_with_the_reason() {
    let rialto = fresh();
    placement::check_lost_call([&rialto, &rialto]);
}
