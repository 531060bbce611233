//! The disk of the data folder is full for a while: what was done meanwhile is recorded when there is space again.

use std::{thread, time::Duration};

use crate::harness::{
    outage::{OutageFixture, SmallDisk, WORK, send},
    rialto::Rialto,
};

const TASKS: usize = 20;

/// Longest time from the end of the outage until every result is recorded.
const RECORDED_WITHIN: Duration = Duration::from_secs(5);

/// Longer than a lease lasts: when the disk has space again, no process could renew its own.
const LONG: Duration = Duration::from_secs(12);

fn results_survive_a_full_disk(durability: &str, away: Duration) {
    let rialto = Rialto::fresh().with("RIALTO_STORE__DURABILITY", durability);
    let Some(disk) = SmallDisk::mount(&rialto.data()) else { return };
    let mut outage = OutageFixture::new(rialto);
    let mut server = outage.serve();
    outage.begin(&server, TASKS);
    disk.fill();
    let runs = outage.runs();
    let new = send(&server.url, "new", true).unwrap();
    thread::sleep(away);
    let made = outage.runs() - runs;
    match new["error"]["message"].as_str() {
        Some(message) => {
            assert!(message.contains("so it was not made"), "{new}");
            assert_eq!(made, 0, "what was said not to be made was not");
        }
        None => assert_eq!(made, 1, "{new}"),
    }
    disk.free();
    outage.expect_all_completed(&server, RECORDED_WITHIN);
    assert!(server.stop().success());
}

#[test]
fn results_that_arrive_while_the_disk_is_full_are_recorded_when_there_is_space() {
    results_survive_a_full_disk("normal", LONG);
}

#[test]
fn results_that_arrive_while_the_disk_is_full_are_recorded_with_full_durability_too() {
    results_survive_a_full_disk("full", WORK + Duration::from_secs(2));
}
