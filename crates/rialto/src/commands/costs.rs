//! `rialto costs`: what calls cost, as far as anybody says.

use rialto_model::{
    call::CallerId,
    cost::{Cents, CostBy, CostQuery, CostSum},
    ids::{AgentId, Scope},
};
use serde_json::json;

use crate::{
    cli::{CostKey, Costs},
    commands::audit::{agent_id, moment},
    output::{self, Trouble},
    program::Program,
};

pub(crate) async fn run(program: &Program, costs: &Costs) -> Result<(), Trouble> {
    let query = query(program, costs)?;
    let mut sums = program.store.costs(&Scope::default(), &query).await?;
    if query.by == CostBy::Agent {
        sums.iter_mut().for_each(|sum| name(program, sum));
    }
    let total = total(&sums);
    if costs.listing.json {
        output::json(&json!({ "sums": sums, "total": total }));
    } else if sums.is_empty() {
        output::line("No calls were completed.");
    } else {
        let by = format!("{:?}", query.by).to_lowercase();
        let rows = sums.iter().chain([&total]).map(row).collect();
        output::table(&[&by, "calls", "cents", "of unknown cost"], rows);
    }
    Ok(())
}

fn query(program: &Program, costs: &Costs) -> Result<CostQuery, Trouble> {
    let moment = |text: &Option<String>| text.as_deref().map(moment).transpose();
    Ok(CostQuery {
        since: moment(&costs.since)?,
        until: moment(&costs.until)?,
        agent: costs.agent.as_deref().map(|agent| agent_id(program, agent)),
        caller: costs.caller.as_deref().map(CallerId::from),
        by: match costs.by {
            CostKey::Agent => CostBy::Agent,
            CostKey::Skill => CostBy::Skill,
            CostKey::Caller => CostBy::Caller,
            CostKey::Day => CostBy::Day,
        },
    })
}

/// People know agents by their slugs. One that is no longer registered keeps its id.
fn name(program: &Program, sum: &mut CostSum) {
    if let Some(agent) = program.engine.registry().get(&AgentId::from(sum.key.as_str())) {
        sum.key.clone_from(&agent.slug);
    }
}

fn total(sums: &[CostSum]) -> CostSum {
    let none = CostSum { key: "total".to_owned(), calls: 0, unknown: 0, estimated_cents: Cents::default() };
    sums.iter().fold(none, |total, sum| CostSum {
        calls: total.calls + sum.calls,
        unknown: total.unknown + sum.unknown,
        estimated_cents: total.estimated_cents.plus(sum.estimated_cents),
        key: total.key,
    })
}

fn row(sum: &CostSum) -> Vec<String> {
    vec![sum.key.clone(), sum.calls.to_string(), sum.estimated_cents.to_string(), sum.unknown.to_string()]
}
