//! Checks of a remote server: reachability, readiness and permissions.

use std::collections::BTreeMap;

use http::StatusCode;
use rialto_api_types::overview::CallerIdentity;
use rialto_model::{failure::Failure, token_scopes::TokenScope};
use serde::Deserialize;
use serde_json::Value;

use super::{DoctorFinding, error_finding, ok_finding, warning};
use crate::api_client::{ApiClient, RemoteApi};

/// Response of a server's `/readyz`.
#[derive(Default, Deserialize)]
struct ReadinessReport {
    reasons: Vec<ReadinessReason>,
}

#[derive(Deserialize)]
struct ReadinessReason {
    check: String,
    message: String,
}

pub(super) async fn examine(api: &ApiClient) -> Vec<DoctorFinding> {
    let ApiClient::Remote(remote) = api else { return Vec::new() };
    let mut findings = vec![ok_finding("server", remote.base())];
    match remote.get_public("/healthz").await {
        Ok((StatusCode::OK, body)) if body.trim_ascii() == b"ok" => {
            findings.push(ok_finding("health", "it answers"));
        }
        Ok((status, _)) => {
            let found = format!("something answers, with HTTP {}, but not as Rialto does", status.as_u16());
            findings.push(error_finding(
                "health",
                found,
                "see that --server names the address that `rialto serve` printed",
            ));
            return findings;
        }
        Err(failure) => {
            findings.push(failure_finding("health", &failure));
            return findings;
        }
    }
    findings.extend(check_readiness(remote).await);
    match api.get(&["me"]).read::<CallerIdentity>().await {
        Ok(me) => findings.extend(check_identity(&me)),
        Err(failure) => findings.push(failure_finding("token", &failure)),
    }
    findings
}

async fn check_readiness(remote: &RemoteApi) -> Vec<DoctorFinding> {
    match remote.get_public("/readyz").await {
        Ok((StatusCode::OK, _)) => vec![ok_finding("readiness", "accepts calls")],
        Ok((_, body)) => {
            let ReadinessReport { reasons } = serde_json::from_slice(&body).unwrap_or_default();
            let reason = |reason: ReadinessReason| {
                error_finding(&reason.check, reason.message, "see `rialto doctor` at its machine")
            };
            reasons.into_iter().map(reason).collect()
        }
        Err(failure) => vec![failure_finding("readiness", &failure)],
    }
}

fn check_identity(me: &CallerIdentity) -> Vec<DoctorFinding> {
    let ours = env!("CARGO_PKG_VERSION");
    let version = if me.version == ours {
        ok_finding("version", format!("Rialto {ours}, like this machine"))
    } else {
        warning(
            "version",
            format!("Rialto {} on the server, {ours} on this machine", me.version),
            "use the same version on both sides",
        )
    };
    let CallerIdentity { caller, kind, org, project, scopes, may, .. } = me;
    let names: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let token = ok_finding(
        "token",
        format!("identifies {caller} ({}) in {org}/{project}, with {}", kind.as_str(), names.join(", ")),
    );
    let mut findings = vec![version, token];
    if !scopes.contains(&TokenScope::Admin) {
        let fix = format!("rialto tokens create {caller} --scope admin --scope call --scope discover");
        findings.push(warning("administration", "the token is not for it", &fix));
        return findings;
    }
    let may: BTreeMap<&String, &Value> = may.iter().collect();
    for (action, is_allowed) in may {
        findings.push(if *is_allowed == Value::Bool(true) {
            ok_finding(action, "a policy permits it")
        } else {
            warning(
                action,
                "no policy permits it",
                &format!("rialto policy add allow-admin {action} --caller {caller}"),
            )
        });
    }
    findings
}

/// A failure's message ends with its fix, which is split off.
fn failure_finding(what: &str, failure: &Failure) -> DoctorFinding {
    match failure.message.split_once("; ") {
        Some((found, fix)) => error_finding(what, found, fix),
        None => error_finding(what, failure.message.clone(), "see `rialto doctor` at its machine"),
    }
}
