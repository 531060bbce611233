//! Costs of calls, as reported by agents.

use rialto_api_types::audit::CostReport;
use rialto_model::{
    call::{Caller, CallerId},
    cost::{Cents, CostBy, CostQuery, CostSum},
    failure::Failure,
    ids::AgentId,
};
use rialto_policy::Action;

use super::audit::{find_agent_id, non_blank, parse_time};
use crate::{Administration, administration::store_failure};

/// Filter and grouping of a cost report.
#[derive(Clone, Debug, Default)]
pub struct CostReportQuery {
    /// Earliest end of a call: a timestamp, or how long ago (`2h`).
    pub since: Option<String>,
    /// Time before which calls must have ended.
    pub until: Option<String>,
    /// Agent to filter by: its slug, id, URL or name.
    pub agent: Option<String>,
    /// Caller to filter by.
    pub caller: Option<String>,
    /// Grouping of the sums.
    pub by: CostBy,
}

/// Sums up the costs of calls in the caller's org.
pub async fn cost_report(
    admin: &Administration,
    caller: &Caller,
    filter: &CostReportQuery,
) -> Result<CostReport, Failure> {
    admin.authorize_admin(caller, Action::AdminAudit).await?;
    let now = admin.engine().now();
    let time = |text: &Option<String>| non_blank(text).map(|text| parse_time(&text, now)).transpose();
    let query = CostQuery {
        since: time(&filter.since)?,
        until: time(&filter.until)?,
        agent: non_blank(&filter.agent).map(|key| find_agent_id(admin, caller, key)),
        caller: non_blank(&filter.caller).map(CallerId::from),
        by: filter.by,
    };
    let mut sums = admin.store().costs(&caller.scope, &query).await.map_err(store_failure)?;
    if query.by == CostBy::Agent {
        sums.iter_mut().for_each(|sum| name_by_slug(admin, sum));
    }
    let total = sum_up(&sums);
    Ok(CostReport { sums, total })
}

/// Grouping by its name.
pub fn parse_grouping(name: &str) -> Option<CostBy> {
    match name {
        "agent" => Some(CostBy::Agent),
        "skill" => Some(CostBy::Skill),
        "caller" => Some(CostBy::Caller),
        "day" => Some(CostBy::Day),
        _ => None,
    }
}

/// Replaces the id of a registered agent by its slug.
fn name_by_slug(admin: &Administration, sum: &mut CostSum) {
    if let Some(agent) = admin.engine().registry().get(&AgentId::from(sum.key.as_str())) {
        sum.key.clone_from(&agent.slug);
    }
}

fn sum_up(sums: &[CostSum]) -> CostSum {
    let none = CostSum { key: "total".to_owned(), calls: 0, unknown: 0, estimated_cents: Cents::default() };
    sums.iter().fold(none, |total, sum| CostSum {
        calls: total.calls + sum.calls,
        unknown: total.unknown + sum.unknown,
        estimated_cents: total.estimated_cents.plus(sum.estimated_cents),
        key: total.key,
    })
}
