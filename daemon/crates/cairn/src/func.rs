//! Tools made from functions.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc};

use cairn_engine::tool::{Output, Permit, Tool, ToolSpec, arguments};
use cairn_protocol::error::Failure;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

type Work = Box<
    dyn Fn(Permit, Value) -> Pin<Box<dyn Future<Output = Result<Output, Failure>> + Send>>
        + Send
        + Sync,
>;

/// A tool that maps arguments to an answer by a function. It is read-only unless [`FnTool::writes`]
/// is called.
pub struct FnTool {
    spec: ToolSpec,
    work: Work,
}

impl FnTool {
    /// Creates a tool. Its schema is that of the function's argument; the first sentence of the
    /// description is the short text in the models' list.
    pub fn new<P, R, F, A>(name: &'static str, description: &'static str, work: F) -> Self
    where
        P: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + 'static,
        F: Fn(P) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let _types: PhantomData<fn(P) -> R> = PhantomData;
        let work = Arc::new(work);
        let call = move |_permit: Permit,
                         value: Value|
              -> Pin<Box<dyn Future<Output = Result<Output, Failure>> + Send>> {
            let work = Arc::clone(&work);
            Box::pin(async move {
                let answer = work(arguments::<P>(value)?).await?;
                Output::of("answer", &answer, false)
            })
        };
        let spec = ToolSpec { paths: &[], ..ToolSpec::reading::<P>(name, description) };
        Self { spec, work: Box::new(call) }
    }

    /// Sets a text that is part of the system text while the tool is offered.
    #[must_use]
    pub fn addendum(mut self, text: impl Into<String>) -> Self {
        self.spec.addendum = text.into().into();
        self
    }

    /// Marks the tool as writing: rules and approvals then decide on each call.
    #[must_use]
    pub fn writes(mut self) -> Self {
        self.spec.read_only = false;
        self
    }
}

#[async_trait::async_trait]
impl Tool for FnTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn run(&self, permit: Permit, arguments: Value) -> Result<Output, Failure> {
        (self.work)(permit, arguments).await
    }
}
