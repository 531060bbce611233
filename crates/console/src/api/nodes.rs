//! `/api/v1/nodes`.

use axum::response::Response;
use rialto_api_types::nodes::NodeList;
use rialto_model::failure::Failure;

use super::{asking::Asking, good};
use crate::admin::nodes;

pub(super) async fn list(asking: Asking) -> Result<Response, Failure> {
    good(&NodeList { nodes: nodes::list(&asking.console, &asking.caller).await? })
}

pub(super) async fn drain(asking: Asking) -> Result<Response, Failure> {
    good(&nodes::set_draining(&asking.console, &asking.caller, asking.part("name"), true).await?)
}

pub(super) async fn undrain(asking: Asking) -> Result<Response, Failure> {
    good(&nodes::set_draining(&asking.console, &asking.caller, asking.part("name"), false).await?)
}
