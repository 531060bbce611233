//! `rialto costs`: costs of calls, where declared.

use rialto_api_types::audit::CostReport;
use rialto_model::{cost::CostSum, json::Json};

use crate::{
    api_client::{ApiClient, parse_response},
    cli::{CostGrouping, CostsOptions},
    output::{self, CommandError},
};

pub(crate) async fn run(api: &ApiClient, costs: &CostsOptions) -> Result<(), CommandError> {
    let by = match costs.by {
        CostGrouping::Agent => "agent",
        CostGrouping::Skill => "skill",
        CostGrouping::Caller => "caller",
        CostGrouping::Day => "day",
    };
    let question =
        api.get(&["costs"]).with_query("by", by).with_optional_query("since", costs.since.as_ref());
    let question = question
        .with_optional_query("until", costs.until.as_ref())
        .with_optional_query("agent", costs.agent.as_ref());
    let response: Json = question.with_optional_query("caller", costs.caller.as_ref()).read().await?;
    if costs.listing.json {
        output::print_json(&response);
        return Ok(());
    }
    let CostReport { sums, total } = parse_response(&response)?;
    if sums.is_empty() {
        output::print_line("No completed calls.");
    } else {
        let rows = sums.iter().chain([&total]).map(cost_row).collect();
        output::print_table(&[by, "calls", "cents", "of unknown cost"], rows);
    }
    Ok(())
}

fn cost_row(sum: &CostSum) -> Vec<String> {
    vec![sum.key.clone(), sum.calls.to_string(), sum.estimated_cents.to_string(), sum.unknown.to_string()]
}
