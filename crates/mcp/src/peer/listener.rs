//! Hears what a server says without being asked: that its tools have changed, and what it wants of us.
//!
//! A question for a person goes to whoever made the call. What the server would have a model say (sampling) is said by the
//! configured agent, or declined: then we do not say that we can do it. We have no roots.

#![expect(deprecated, reason = "servers of earlier versions still have models say something")]

use std::sync::{Arc, OnceLock, Weak};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest,
        CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        ExtensionCapabilities, FormElicitationCapability, Implementation, JsonObject, SamplingCapability,
        TASKS_EXTENSION_ID, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::Value;

use super::{ears::Ears, line::Line, question::Question};

/// What a question is called that has no name of its own.
const ANSWER: &str = "answer";

/// What hears.
#[derive(Clone)]
pub(super) struct Listener {
    ears: Ears,
    /// Whether somebody says what the server would have a model say.
    samples: bool,
    line: Arc<OnceLock<Weak<Line>>>,
}

// === impl Listener ===

impl Listener {
    pub(super) fn new(ears: Ears, samples: bool) -> Self {
        Self { ears, samples, line: Arc::default() }
    }

    /// From now on changes are told to `line`.
    pub(super) fn tell(&self, line: &Arc<Line>) {
        let _ = self.line.set(Arc::downgrade(line));
    }

    async fn ask(&self, params: &Value, context: &RequestContext<RoleClient>) -> Result<Value, ErrorData> {
        let question = Question::read(ANSWER, params).ok_or_else(|| {
            ErrorData::invalid_params("expected a message with a requestedSchema or a url", None)
        })?;
        tokio::select! {
            answer = self.ears.ask(&context.id, question) => answer,
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the question was withdrawn", None)),
        }
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("rialto", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities(self.samples), own)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(request).unwrap_or_default();
        let answer = self.ask(&params, &context).await?;
        // What was read from a message is one of these.
        Ok(serde_json::from_value(answer).unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let caller = self.ears.caller(&context.id).await?;
        let refused = |why: String| ErrorData::internal_error(why, None);
        let line = self.line.get().and_then(Weak::upgrade);
        let line = line.ok_or_else(|| refused("the connection is not ready for that".to_owned()))?;
        let params = serde_json::to_value(params).unwrap_or_default();
        let said = line.sample(&caller, params).await.map_err(refused)?;
        serde_json::from_value(said).map_err(|error| refused(error.to_string()))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        // A form that the library has no type for is a form all the same.
        match (request.method.as_str(), &request.params) {
            ("elicitation/create", Some(params)) => self.ask(params, &context).await.map(CustomResult::new),
            (method, _) => Err(ErrorData::new(
                rmcp::model::ErrorCode::METHOD_NOT_FOUND,
                format!("{method} is not offered here"),
                None,
            )),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        if let Some(line) = self.line.get().and_then(Weak::upgrade) {
            line.changed();
        }
    }
}

fn capabilities(samples: bool) -> ClientCapabilities {
    let mut able = ClientCapabilities::default();
    able.sampling = samples.then(SamplingCapability::default);
    able.elicitation = Some(
        ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default()),
    );
    able.extensions = Some(ExtensionCapabilities::from([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())]));
    able
}
