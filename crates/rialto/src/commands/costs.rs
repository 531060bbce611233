//! `rialto costs`: what calls cost, as far as anybody says.

use rialto_api_types::audit::CostReport;
use rialto_model::{cost::CostSum, json::Json};

use crate::{
    cli::{CostKey, Costs},
    desk::{Desk, read},
    output::{self, Trouble},
};

pub(crate) async fn run(desk: &Desk, costs: &Costs) -> Result<(), Trouble> {
    let by = match costs.by {
        CostKey::Agent => "agent",
        CostKey::Skill => "skill",
        CostKey::Caller => "caller",
        CostKey::Day => "day",
    };
    let question = desk.get(&["costs"]).with("by", by).with_given("since", costs.since.as_ref());
    let question =
        question.with_given("until", costs.until.as_ref()).with_given("agent", costs.agent.as_ref());
    let told: Json = question.with_given("caller", costs.caller.as_ref()).read().await?;
    if costs.listing.json {
        output::json(&told);
        return Ok(());
    }
    let CostReport { sums, total } = read(&told)?;
    if sums.is_empty() {
        output::line("No calls were completed.");
    } else {
        let rows = sums.iter().chain([&total]).map(row).collect();
        output::table(&[by, "calls", "cents", "of unknown cost"], rows);
    }
    Ok(())
}

fn row(sum: &CostSum) -> Vec<String> {
    vec![sum.key.clone(), sum.calls.to_string(), sum.estimated_cents.to_string(), sum.unknown.to_string()]
}
