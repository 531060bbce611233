//! Client handler: processes notifications and requests of an MCP server.
//!
//! Questions go to the caller of the tool. Sampling requests go to the configured agent, or are declined: the capability is then not
//! declared. There are no roots.

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

use crate::{call_listeners::CallListeners, question::ServerQuestion, server_link::ServerLink};

/// Name of a question without a name of its own.
const DEFAULT_ANSWER_KEY: &str = "answer";

/// Handles the notifications and requests of one server.
#[derive(Clone)]
pub(crate) struct UpstreamClientHandler {
    ears: CallListeners,
    /// True when sampling is configured.
    samples: bool,
    line: Arc<OnceLock<Weak<ServerLink>>>,
}

// === impl UpstreamClientHandler ===

impl UpstreamClientHandler {
    pub(crate) fn new(ears: CallListeners, samples: bool) -> Self {
        Self { ears, samples, line: Arc::default() }
    }

    /// Sends changes to `line` from now on.
    pub(crate) fn tell(&self, line: &Arc<ServerLink>) {
        let _ = self.line.set(Arc::downgrade(line));
    }

    async fn ask(&self, params: &Value, context: &RequestContext<RoleClient>) -> Result<Value, ErrorData> {
        let question = ServerQuestion::read(DEFAULT_ANSWER_KEY, params).ok_or_else(|| {
            ErrorData::invalid_params("expected a message with a requestedSchema or a url", None)
        })?;
        tokio::select! {
            answer = self.ears.ask(&context.id, question) => answer,
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the question was withdrawn", None)),
        }
    }
}

impl ClientHandler for UpstreamClientHandler {
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
        // Parameters parsed from a message are always one of these.
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
        // rmcp has no type for some forms; they are supported all the same.
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
