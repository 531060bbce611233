//! The program among strangers: agents and clients that others wrote. Run with `--profile foreign`.

mod agents;
mod cancels;
mod clients;
mod comings;
mod crash;
mod grpc;
mod postgres;
mod servers;
mod troubles;
