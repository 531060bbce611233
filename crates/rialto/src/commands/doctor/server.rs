//! A server elsewhere: whether it answers, whether it lets us in, and what we may do there.

use std::collections::BTreeMap;

use http::StatusCode;
use rialto_api_types::overview::CallerIdentity;
use rialto_model::{failure::Failure, token_scopes::TokenScope};
use serde::Deserialize;
use serde_json::Value;

use super::{Finding, bad, good, warn};
use crate::desk::{Desk, There};

/// What keeps a server from taking calls.
#[derive(Default, Deserialize)]
struct Ready {
    reasons: Vec<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    check: String,
    message: String,
}

pub(super) async fn examine(desk: &Desk) -> Vec<Finding> {
    let Desk::There(there) = desk else { return Vec::new() };
    let mut findings = vec![good("server", there.base())];
    match there.look("/healthz").await {
        Ok((StatusCode::OK, body)) if body.trim_ascii() == b"ok" => {
            findings.push(good("health", "it answers"));
        }
        Ok((status, _)) => {
            let found = format!("something answers, with HTTP {}, but not as Rialto does", status.as_u16());
            findings.push(bad(
                "health",
                found,
                "see that --server names the address that `rialto serve` printed",
            ));
            return findings;
        }
        Err(failure) => {
            findings.push(told("health", &failure));
            return findings;
        }
    }
    findings.extend(readiness(there).await);
    match desk.get(&["me"]).read::<CallerIdentity>().await {
        Ok(me) => findings.extend(who_we_are(&me)),
        Err(failure) => findings.push(told("token", &failure)),
    }
    findings
}

async fn readiness(there: &There) -> Vec<Finding> {
    match there.look("/readyz").await {
        Ok((StatusCode::OK, _)) => vec![good("readiness", "it takes calls")],
        Ok((_, body)) => {
            let Ready { reasons } = serde_json::from_slice(&body).unwrap_or_default();
            let reason =
                |reason: Reason| bad(&reason.check, reason.message, "see `rialto doctor` at its machine");
            reasons.into_iter().map(reason).collect()
        }
        Err(failure) => vec![told("readiness", &failure)],
    }
}

fn who_we_are(me: &CallerIdentity) -> Vec<Finding> {
    let ours = env!("CARGO_PKG_VERSION");
    let version = if me.version == ours {
        good("version", format!("Rialto {ours}, as here"))
    } else {
        warn(
            "version",
            format!("Rialto {} there, {ours} here", me.version),
            "use the same version on both sides",
        )
    };
    let CallerIdentity { caller, kind, org, project, scopes, may, .. } = me;
    let names: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let token = good(
        "token",
        format!("it is that of {caller} ({}) in {org}/{project}, for {}", kind.as_str(), names.join(", ")),
    );
    let mut findings = vec![version, token];
    if !scopes.contains(&TokenScope::Admin) {
        let fix = format!("rialto tokens create {caller} --scope admin --scope call --scope discover");
        findings.push(warn("administration", "the token is not for it", &fix));
        return findings;
    }
    let may: BTreeMap<&String, &Value> = may.iter().collect();
    for (action, is_allowed) in may {
        findings.push(if *is_allowed == Value::Bool(true) {
            good(action, "a policy permits it")
        } else {
            warn(
                action,
                "no policy permits it",
                &format!("rialto policy add allow-admin {action} --caller {caller}"),
            )
        });
    }
    findings
}

/// A failure says itself how it is mended, behind its first half.
fn told(what: &str, failure: &Failure) -> Finding {
    match failure.message.split_once("; ") {
        Some((found, fix)) => bad(what, found, fix),
        None => bad(what, failure.message.clone(), "see `rialto doctor` at its machine"),
    }
}
