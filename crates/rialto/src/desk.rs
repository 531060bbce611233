//! Where a command gets what it shows, and has done what it wants done: here, or on a server elsewhere.
//!
//! Both are asked the same questions: those of `/api/v1`. A server is asked over HTTP. Here the same routes answer inside of this
//! process, over the opened data folder, to somebody who works at the machine and needs no policy. So a command is written
//! once, and what it prints cannot depend on where it was done.

mod address;
mod here;
mod places;
mod question;
mod stream;
mod there;
mod trouble;

use http::Method;
use rialto_model::json::Json;
use serde::de::DeserializeOwned;

pub(crate) use self::{here::Here, places::check, question::Question, stream::Stream, there::There};
use crate::{cli::Common, environment::Environment, output::Trouble, program::Program};

/// Where a command does its work.
pub(crate) enum Desk {
    /// In the data folder of this machine.
    Here(Box<Here>),
    /// On a server.
    There(There),
}

// === impl Desk ===

impl Desk {
    /// Opens what the command line and the environment name.
    pub(crate) async fn open(common: &Common, environment: &Environment) -> Result<Self, Trouble> {
        match Self::elsewhere(common, environment)? {
            Some(elsewhere) => Ok(elsewhere),
            None => Ok(Self::Here(Box::new(Here::new(crate::open(common, environment).await?)))),
        }
    }

    /// The server that is meant, if one is.
    pub(crate) fn elsewhere(common: &Common, environment: &Environment) -> Result<Option<Self>, Trouble> {
        let server = address::meant(common)?;
        server.map(|server| There::new(&server, common, environment).map(Self::There)).transpose()
    }

    /// Whether the command line and the environment name a server.
    pub(crate) fn is_elsewhere(common: &Common) -> Result<bool, Trouble> {
        Ok(address::meant(common)?.is_some())
    }

    /// The program, where it is opened here.
    pub(crate) fn program(&self) -> Option<&Program> {
        match self {
            Self::Here(here) => Some(&here.program),
            Self::There(_) => None,
        }
    }

    /// Tells what is still to be told of calls that were made here, and ends what was started for them.
    pub(crate) async fn close(&self) {
        if let Some(program) = self.program() {
            program.finish_traces().await;
            program.tools.close().await;
            program.engine.lease().retire().await;
        }
    }

    /// Asks for what is at this path below `/api/v1`, part by part.
    pub(crate) fn get(&self, path: &[&str]) -> Question<'_> {
        Question::new(self, Method::GET, path)
    }

    /// Has something done there.
    pub(crate) fn post(&self, path: &[&str]) -> Question<'_> {
        Question::new(self, Method::POST, path)
    }

    /// Puts something in the place of what is there.
    pub(crate) fn put(&self, path: &[&str]) -> Question<'_> {
        Question::new(self, Method::PUT, path)
    }

    /// Takes away what is there.
    pub(crate) fn delete(&self, path: &[&str]) -> Question<'_> {
        Question::new(self, Method::DELETE, path)
    }
}

/// Reads what was told into what is shown.
pub(crate) fn read<T: DeserializeOwned>(told: &Json) -> Result<T, Trouble> {
    told.read().map_err(|error| {
        Trouble::other(format!(
            "the answer is not understood ({error}); update the older of client and server"
        ))
    })
}
