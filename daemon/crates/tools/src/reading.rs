//! The common form of all reading tools: arguments in, a bounded answer out, work off the async
//! threads.

use cairn_harness::{Output, Permit, Tool, ToolSpec, arguments};
use cairn_protocol::error::Failure;
use cairn_search::CancelFlag;
use serde_json::Value;

use crate::Deps;

/// Function of a reading tool: it gets the services, its permit, its arguments and a cancellation
/// flag, and returns its output and true if that was truncated.
pub type Act<P, T> = fn(&Deps, &Permit, P, &CancelFlag) -> Result<(T, bool), Failure>;

pub struct Reading<P, T> {
    deps: Deps,
    name: &'static str,
    description: &'static str,
    tag: &'static str,
    act: Act<P, T>,
    narrows: bool,
    hidden: bool,
}

/// Creates a tool that reads exactly the requested paths.
pub fn reading<P, T>(
    deps: &Deps,
    name: &'static str,
    description: &'static str,
    tag: &'static str,
    act: Act<P, T>,
) -> Reading<P, T> {
    Reading { deps: deps.clone(), name, description, tag, act, narrows: false, hidden: true }
}

impl<P, T> Reading<P, T> {
    /// Limits the tool's results to the run's paths when more is requested.
    pub fn narrowing(self) -> Self {
        Self { narrows: true, ..self }
    }

    /// Offers the tool to models too.
    pub fn offered(self) -> Self {
        Self { hidden: false, ..self }
    }
}

#[async_trait::async_trait]
impl<P, T> Tool for Reading<P, T>
where
    P: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static,
    T: serde::Serialize + Send + 'static,
{
    fn spec(&self) -> ToolSpec {
        let (narrows, hidden) = (self.narrows, self.hidden);
        ToolSpec { narrows, hidden, ..ToolSpec::reading::<P>(self.name, self.description) }
    }

    async fn run(&self, permit: Permit, value: Value) -> Result<Output, Failure> {
        let params: P = arguments(value)?;
        let flag = CancelFlag::new();
        let _end = flag.cancel_on_drop();
        let (deps, act, tag) = (self.deps.clone(), self.act, self.tag);
        let work = move || {
            let (answer, cut) = act(&deps, &permit, params, &flag)?;
            Output::of(tag, &answer, cut)
        };
        off_thread(work).await
    }
}

/// Runs blocking work off the async threads.
pub async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    cairn_harness::off_thread("tool", work).await
}
