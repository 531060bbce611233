//! Servers as nodes: their names, and their states as others see them.

use serde_json::Value;

use super::{http, rialto::Rialto, server::ServerProcess};

/// Starts a server with this name on a port of its own.
pub(crate) fn serve_named(rialto: &Rialto, name: &str, args: &[&str]) -> ServerProcess {
    rialto.serve_with(&[("RIALTO_SERVER__NODE_NAME", name)], args)
}

/// The nodes as a command on this installation lists them, without what changes every second.
pub(crate) fn list(rialto: &Rialto, args: &[&str]) -> Value {
    let mut nodes = rialto.json(&[&["nodes", "list", "--json"], args].concat());
    for node in nodes.as_array_mut().unwrap() {
        node.as_object_mut().unwrap().remove("renewedAt");
    }
    nodes
}

/// Names and states of the nodes.
pub(crate) fn states(rialto: &Rialto) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let nodes = list(rialto, &[]);
    nodes.as_array().unwrap().iter().map(|node| (text(&node["name"]), text(&node["state"]))).collect()
}

/// Status and body of `/readyz`.
pub(crate) fn ready(server: &ServerProcess) -> (u16, Value) {
    let answer = http::get(&format!("{}/readyz", server.url)).unwrap();
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}
