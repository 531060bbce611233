//! `rialto costs`: what a card says about its price is found again in the sums.

use serde_json::json;

use crate::harness::{agent::SampleAgent, rialto::Rialto};

#[test]
fn what_cards_say_is_summed_up_and_what_they_do_not_say_is_unknown() {
    let (rialto, desk, other) = (Rialto::fresh(), SampleAgent::named("Desk"), SampleAgent::named("Other"));
    desk.change_card(|card| {
        card["costPerTask"] = json!({ "amount": 0.02, "currency": "USD" });
        card["skills"][0]["costPerTask"] = json!(0.5);
    });
    rialto.trust(&desk.url);
    rialto.trust(&other.url);
    assert!(rialto.cli(&["costs"]).ok().out.contains("No completed calls"));
    rialto.cli(&["call", "desk.echo"]).ok();
    rialto.cli(&["call", "desk.echo"]).ok();
    rialto.cli(&["call", "desk.greet", r#"{"name":"Ann"}"#]).ok();
    rialto.cli(&["call", "desk.fail"]).exit(1);
    rialto.cli(&["call", "other.echo"]).ok();

    let sum = |key: &str, calls: u64, unknown: u64, cents: serde_json::Value| json!({ "key": key, "calls": calls, "unknown": unknown, "estimatedCents": cents });
    let by_agent = rialto.json(&["costs", "--json"]);
    assert_eq!(by_agent["sums"], json!([sum("desk", 3, 0, json!(3)), sum("other", 1, 1, json!(0))]));
    assert_eq!(by_agent["total"], sum("total", 4, 1, json!(3)));
    let by_skill = rialto.json(&["costs", "--by", "skill", "--agent", "desk", "--json"]);
    let skills = json!([sum("desk.echo", 2, 0, json!(1)), sum("desk.greet", 1, 0, json!(2))]);
    assert_eq!(by_skill["sums"], skills);
    assert_eq!(rialto.json(&["costs", "--caller", "nobody", "--json"])["sums"], json!([]));
    assert_eq!(rialto.json(&["costs", "--by", "day", "--since", "1d", "--json"])["total"]["calls"], 4);
    let table = rialto.cli(&["costs", "--by", "caller"]).ok().out;
    assert!(table.contains("OF UNKNOWN COST") && table.contains("local"), "{table}");
}
