//! The program among strangers: agents and clients that others wrote. Run with `--profile foreign`.

mod a2a_clients;
mod agents;
mod balanced;
mod cancels;
mod clients;
mod coding;
mod comings;
mod console;
mod crash;
mod dispatches;
mod fidelity;
mod flows;
mod frameworks;
mod grpc;
mod http_sse;
mod install;
mod nodes;
mod operations;
mod postgres;
mod questions;
mod relay;
mod servers;
mod store_outage;
mod text_agents;
mod tls;
mod troubles;
