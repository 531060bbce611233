//! Functions: HTTP endpoints and commands that take arguments and return a result. And `POST /call/<skill>`, the plain HTTP endpoint of
//! every skill.
//!
//! [`backend::FunctionBackend`] executes calls to functions; [`call_endpoint`] lets any client call any skill, whatever its backend.

pub mod backend;
pub mod call_endpoint;
mod command_function;
mod http_function;
mod openapi;
mod request_body;
mod response;
mod result;
