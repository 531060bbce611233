//! Client of the administration API for commands, on this machine or on a server.
//!
//! Both ends serve `/api/v1`. A server is called over HTTP. On this machine the same routes answer inside of this process, over the
//! opened data folder, for a local user who needs no policy. So a command is written once, and its output does not depend on
//! where it runs.

mod command_scope;
mod local;
mod remote;
mod request;
mod response_errors;
mod server_url;
mod stream;

use http::Method;
use rialto_model::json::Json;
use serde::de::DeserializeOwned;

pub(crate) use self::{
    command_scope::check, local::LocalApi, remote::RemoteApi, request::ApiRequest, stream::ServerEventStream,
};
use crate::{app::App, cli::GlobalOptions, environment::Environment, output::CommandError};

/// API of this machine or of a server.
pub(crate) enum ApiClient {
    /// In the data folder of this machine.
    Local(Box<LocalApi>),
    /// On a server.
    Remote(RemoteApi),
}

// === impl ApiClient ===

impl ApiClient {
    /// Opens what the command line and the environment name.
    pub(crate) async fn open(
        common: &GlobalOptions,
        environment: &Environment,
    ) -> Result<Self, CommandError> {
        match Self::open_remote(common, environment)? {
            Some(elsewhere) => Ok(elsewhere),
            None => Ok(Self::Local(Box::new(LocalApi::new(crate::open(common, environment).await?)))),
        }
    }

    /// The server that is meant, if one is.
    pub(crate) fn open_remote(
        common: &GlobalOptions,
        environment: &Environment,
    ) -> Result<Option<Self>, CommandError> {
        let server = server_url::server_url(common)?;
        server.map(|server| RemoteApi::new(&server, common, environment).map(Self::Remote)).transpose()
    }

    /// True if the command line or the environment names a server.
    pub(crate) fn has_remote(common: &GlobalOptions) -> Result<bool, CommandError> {
        Ok(server_url::server_url(common)?.is_some())
    }

    /// The program, where it is opened here.
    pub(crate) fn local_app(&self) -> Option<&App> {
        match self {
            Self::Local(local) => Some(&local.program),
            Self::Remote(_) => None,
        }
    }

    /// Delivers pending webhook events and traces of calls made here, and ends programs started for them.
    pub(crate) async fn close(&self) {
        if let Some(program) = self.local_app() {
            program.finish_traces().await;
            program.tools.close().await;
            program.engine.lease().release_lease().await;
        }
    }

    /// Asks for what is at this path below `/api/v1`, part by part.
    pub(crate) fn get(&self, path: &[&str]) -> ApiRequest<'_> {
        ApiRequest::new(self, Method::GET, path)
    }

    /// Has something done there.
    pub(crate) fn post(&self, path: &[&str]) -> ApiRequest<'_> {
        ApiRequest::new(self, Method::POST, path)
    }

    /// Puts something in the place of what is there.
    pub(crate) fn put(&self, path: &[&str]) -> ApiRequest<'_> {
        ApiRequest::new(self, Method::PUT, path)
    }

    /// Takes away what is there.
    pub(crate) fn delete(&self, path: &[&str]) -> ApiRequest<'_> {
        ApiRequest::new(self, Method::DELETE, path)
    }
}

/// Parses a response.
pub(crate) fn parse_response<T: DeserializeOwned>(response: &Json) -> Result<T, CommandError> {
    response.read().map_err(|error| {
        CommandError::failed(format!(
            "the answer is not understood ({error}); update the older of client and server"
        ))
    })
}
