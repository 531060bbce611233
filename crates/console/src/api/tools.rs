//! `/api/v1/tools`: what is deployed.

use axum::response::Response;
use http::StatusCode;
use rialto_model::failure::Failure;

use super::{asking::Asking, done, good, told};
use crate::admin::tools::{self, deployment_row};

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    let rows = tools::list(&asking.console, &asking.caller).await?;
    let registry = asking.console.engine().registry();
    good(&rows.iter().map(|row| deployment_row(registry, row)).collect::<Vec<_>>())
}

pub(super) async fn show(asking: Asking) -> Result<Response, Failure> {
    let row = tools::find(&asking.console, &asking.caller, asking.part("name")).await?;
    good(&deployment_row(asking.console.engine().registry(), &row))
}

pub(super) async fn deploy(asking: Asking) -> Result<Response, Failure> {
    let registered = tools::deploy(&asking.console, &asking.caller, asking.text()?).await?;
    let status = if registered.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(told(status, &deployment_row(asking.console.engine().registry(), &registered.agent)))
}

pub(super) async fn remove(asking: Asking) -> Result<Response, Failure> {
    tools::remove(&asking.console, &asking.caller, asking.part("name")).await?;
    done()
}
