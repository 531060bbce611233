//! What a client heard about one call of a tool.

use serde_json::Value;

/// The end of a call, and what was told before.
#[derive(Debug)]
pub(crate) struct CallOutcome {
    /// The result, or the JSON-RPC error.
    pub(crate) answer: Result<Value, Value>,
    /// The progress notifications, in order.
    pub(crate) progress: Vec<Value>,
}

// === impl CallOutcome ===

impl CallOutcome {
    /// The end of a call, from a message that has a `result` or an `error`.
    pub(crate) fn of(mut message: Value, progress: Vec<Value>) -> Self {
        let answer = match (message["result"].take(), message["error"].take()) {
            (Value::Null, Value::Null) => panic!("neither a result nor an error"),
            (Value::Null, error) => Err(error),
            (result, _) => Ok(result),
        };
        Self { answer, progress }
    }

    /// The result.
    #[track_caller]
    pub(crate) fn result(&self) -> &Value {
        self.answer.as_ref().unwrap_or_else(|error| panic!("this call failed: {error}"))
    }

    /// The structured content of the result.
    #[track_caller]
    pub(crate) fn data(&self) -> &Value {
        &self.result()["structuredContent"]
    }

    /// All text of the result, in order.
    #[track_caller]
    pub(crate) fn text(&self) -> String {
        let blocks = self.result()["content"].as_array().unwrap();
        blocks.iter().filter_map(|block| block["text"].as_str()).collect()
    }

    /// The error, which must have this code and this class.
    #[track_caller]
    pub(crate) fn error(&self, code: i64, class: &str) -> &Value {
        let error = self.answer.as_ref().expect_err("this call must fail");
        assert_eq!((&error["code"], &error["data"]["class"]), (&code.into(), &class.into()), "{error}");
        error
    }

    /// The words of an error.
    #[track_caller]
    pub(crate) fn complaint(&self) -> &str {
        self.answer.as_ref().expect_err("this call must fail")["message"].as_str().unwrap()
    }
}
