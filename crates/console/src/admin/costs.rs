//! What calls cost, as far as anybody says.

use rialto_api_types::audit::CostReport;
use rialto_model::{
    call::{Caller, CallerId},
    cost::{Cents, CostBy, CostQuery, CostSum},
    failure::Failure,
    ids::AgentId,
};
use rialto_policy::Action;

use super::audit::{agent_id, given, moment};
use crate::{Console, console::store_failure};

/// Which costs to sum up.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only of calls that ended at or after this moment: a time, or how long ago (`2h`).
    pub since: Option<String>,
    /// Only of calls that ended before it.
    pub until: Option<String>,
    /// Only this agent's: by slug, id, URL or name.
    pub agent: Option<String>,
    /// Only this caller's.
    pub caller: Option<String>,
    /// One sum for each of these.
    pub by: CostBy,
}

/// Sums up what calls of the caller's org cost.
pub async fn costs(console: &Console, caller: &Caller, filter: &Filter) -> Result<CostReport, Failure> {
    console.admit(caller, Action::AdminAudit).await?;
    let now = console.engine().now();
    let moment = |text: &Option<String>| given(text).map(|text| moment(&text, now)).transpose();
    let query = CostQuery {
        since: moment(&filter.since)?,
        until: moment(&filter.until)?,
        agent: given(&filter.agent).map(|key| agent_id(console, caller, key)),
        caller: given(&filter.caller).map(CallerId::from),
        by: filter.by,
    };
    let mut sums = console.store().costs(&caller.scope, &query).await.map_err(store_failure)?;
    if query.by == CostBy::Agent {
        sums.iter_mut().for_each(|sum| name(console, sum));
    }
    let total = total(&sums);
    Ok(CostReport { sums, total })
}

/// What costs are summed up by, by its name.
pub(crate) fn by(name: &str) -> Option<CostBy> {
    match name {
        "agent" => Some(CostBy::Agent),
        "skill" => Some(CostBy::Skill),
        "caller" => Some(CostBy::Caller),
        "day" => Some(CostBy::Day),
        _ => None,
    }
}

/// People know agents by their slugs. One that is no longer registered keeps its id.
fn name(console: &Console, sum: &mut CostSum) {
    if let Some(agent) = console.engine().registry().get(&AgentId::from(sum.key.as_str())) {
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
