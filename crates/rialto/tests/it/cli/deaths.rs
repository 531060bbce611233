//! Servers are killed while tasks are in progress, and no result is lost.

use std::time::Duration;

use crate::harness::kill_loop::{KillLoop, killed_again_and_again};

#[test]
fn killed_three_times_during_sixty_tasks_it_loses_none_and_runs_none_twice() {
    killed_on_one_machine(1, 3, 20);
}

/// `cargo nextest run --workspace --run-ignored only -E 'test(/twenty_times/)'` runs it; it takes minutes.
#[test]
#[ignore = "takes minutes"]
fn killed_twenty_times_during_five_hundred_tasks_each_it_loses_none_and_runs_none_twice() {
    killed_on_one_machine(1, 20, 500);
}

#[test]
fn one_of_two_servers_is_killed_three_times_and_the_other_takes_over() {
    killed_on_one_machine(2, 3, 20);
}

/// `cargo nextest run --workspace --run-ignored only -E 'test(/hundred_times/)'` runs it; it takes minutes.
#[test]
#[ignore = "takes minutes"]
fn one_of_two_servers_is_killed_a_hundred_times_and_the_other_takes_over() {
    let recovered = killed_on_one_machine(2, 100, 60);
    assert!(recovered <= Duration::from_secs(5), "{recovered:?}");
}

fn killed_on_one_machine(servers: usize, deaths: usize, tasks: usize) -> Duration {
    let stage = KillLoop::one_machine(servers);
    let told = killed_again_and_again(&stage, deaths, tasks);
    assert_eq!(told.tasks, deaths * tasks);
    stage.check_file(told.tasks);
    told.p99()
}
