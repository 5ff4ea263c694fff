//! The registry of tools. It describes them and never hands one out.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, Weak},
};

use cairn_protocol::{
    error::{Failure, Reason},
    id::SessionId,
    tool::{ToolInfo, is_tool_name},
};
use serde_json::Value;

use crate::{Tool, ToolSpec, schema::ArgumentSchema};

/// Former names of tools, for callers that still use them; they are not listed.
const ALIASES: &[(&str, &str)] = &[("bash", "run_shell"), ("python3", "evaluate")];

/// Tools that models see under another name when the user switches that on.
const OFFERED_AS: &[(&str, &str)] = &[("run_shell", "shell")];

type Tools = RwLock<ToolTable>;

/// The tools, and the user's switches for them.
#[derive(Default)]
struct ToolTable {
    all: BTreeMap<String, Arc<Entry>>,
    /// Tools of single sessions. None has the name of a tool for all sessions.
    by_session: HashMap<SessionId, BTreeMap<String, Arc<Entry>>>,
    switches: BTreeMap<String, bool>,
}

impl ToolTable {
    fn is_off(&self, name: &str) -> bool {
        self.switches.get(name) == Some(&false)
    }

    /// Returns the tools of a session alone.
    fn of_session(
        &self,
        session: Option<&SessionId>,
    ) -> impl Iterator<Item = (&String, &Arc<Entry>)> {
        let own = session.and_then(|session| self.by_session.get(session)).into_iter().flatten();
        own.filter(|(name, _)| !self.all.contains_key(*name))
    }

    fn entry(&self, name: &str, session: Option<&SessionId>) -> Option<&Arc<Entry>> {
        let own = || self.by_session.get(session?)?.get(name);
        self.all.get(name).or_else(own)
    }

    /// Returns the specification of each tool that is not switched off, hidden or not according to
    /// the switches.
    fn specs(&self, session: Option<&SessionId>) -> Vec<ToolSpec> {
        let listed = |(name, entry): (&String, &Arc<Entry>)| {
            let on = |name: &str| self.switches.get(name) == Some(&true);
            let other = OFFERED_AS
                .iter()
                .any(|(own, other)| own == name && on(other) && !self.is_off(other));
            let hidden = other || (entry.spec.hidden && !on(name));
            ToolSpec { hidden, ..entry.spec.clone() }
        };
        let all = self.all.iter().chain(self.of_session(session));
        all.filter(|(name, _)| !self.is_off(name)).map(listed).collect()
    }
}

/// Tools by name. Additions and removals affect later calls only. Clones share the tools.
#[derive(Default, Clone)]
pub struct Registry {
    tools: Arc<Tools>,
    /// For each tool added by [`Registry::cover`], the tool that it replaced.
    covered: Arc<RwLock<BTreeMap<String, Option<Arc<Entry>>>>>,
    aliases: Arc<RwLock<BTreeMap<String, String>>>,
    /// Session whose own tools this view adds to the common ones.
    session: Option<SessionId>,
}

/// A view of the specifications in a registry, for a tool that belongs to it. It holds no strong
/// reference to the registry.
#[derive(Clone)]
pub struct Catalogue(Weak<Tools>);

impl Catalogue {
    /// Returns the specification of every tool that a session has, by name; empty when the registry
    /// has been dropped.
    pub fn specs(&self, session: &SessionId) -> Vec<ToolSpec> {
        self.0.upgrade().map_or_else(Vec::new, |tools| specs(&tools, Some(session)))
    }
}

fn specs(tools: &Tools, session: Option<&SessionId>) -> Vec<ToolSpec> {
    let tools = tools.read().unwrap_or_else(PoisonError::into_inner);
    tools.specs(session)
}

/// A tool with its compiled schema.
pub(crate) struct Entry {
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) spec: ToolSpec,
    schema: ArgumentSchema,
}

impl Registry {
    /// Returns a view of the same registry for one session: it sees the tools of all sessions and
    /// those of this one, and what it adds by [`Registry::cover`] belongs to the session alone.
    #[must_use]
    pub fn scoped(&self, session: &SessionId) -> Self {
        Self { session: Some(session.clone()), ..self.clone() }
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// A name that is taken, or an invalid schema.
    pub fn add(&self, tool: Arc<dyn Tool>) -> Result<(), Failure> {
        let entry = Entry::of(tool)?;
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if tools.all.contains_key(&*entry.spec.name) {
            return Err(unfit(&entry.spec, "is registered twice"));
        }
        tools.all.insert(entry.spec.name.clone().into_owned(), Arc::new(entry));
        Ok(())
    }

    /// Adds a tool in place of the one with its name, if there is one, which is restored when this
    /// one is removed. A tool that was added this way before is dropped.
    ///
    /// # Errors
    /// An invalid schema.
    pub fn cover(&self, tool: Arc<dyn Tool>) -> Result<(), Failure> {
        let entry = Entry::of(tool)?;
        let name = entry.spec.name.clone().into_owned();
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &self.session {
            let own = tools.by_session.entry(session.clone()).or_default();
            own.insert(name, Arc::new(entry));
            return Ok(());
        }
        let before = tools.all.insert(name.clone(), Arc::new(entry));
        self.covered.write().unwrap_or_else(PoisonError::into_inner).entry(name).or_insert(before);
        Ok(())
    }

    /// Removes a tool, and restores the one that it replaced; does nothing if there is none.
    pub fn remove(&self, name: &str) {
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = &self.session {
            let own = tools.by_session.get_mut(session);
            if own.is_some_and(|own| own.remove(name).is_some() && own.is_empty()) {
                tools.by_session.remove(session);
            }
            return;
        }
        match self.covered.write().unwrap_or_else(PoisonError::into_inner).remove(name) {
            Some(Some(before)) => tools.all.insert(name.to_owned(), before),
            _ => tools.all.remove(name),
        };
    }

    /// Returns true if the tool of that name replaced another.
    pub fn covers(&self, name: &str) -> bool {
        let covered = self.covered.read().unwrap_or_else(PoisonError::into_inner);
        covered.get(name).is_some_and(Option::is_some)
    }

    /// Sets the user's switches: a tool that is off is neither listed nor called, a hidden one that
    /// is on is offered to models.
    pub fn switch(&self, switches: BTreeMap<String, bool>) {
        self.tools.write().unwrap_or_else(PoisonError::into_inner).switches = switches;
    }

    /// Returns true if a name, or a former name of a tool, is taken.
    pub fn has(&self, name: &str) -> bool {
        !matches!(self.find(name), Err(failure) if failure.reason == Reason::UnknownTool)
    }

    /// Adds another name for a tool.
    pub fn alias(&self, alias: &str, name: &str) {
        let mut aliases = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
        aliases.insert(alias.to_owned(), name.to_owned());
    }

    /// Returns every tool, by name.
    pub fn list(&self) -> Vec<ToolInfo> {
        self.specs().iter().map(ToolSpec::info).collect()
    }

    /// Returns the specification of every tool, by name.
    pub fn specs(&self) -> Vec<ToolSpec> {
        specs(&self.tools, self.session.as_ref())
    }

    /// Returns a view of the specifications for a tool of this registry.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue(Arc::downgrade(&self.tools))
    }

    /// Returns true if the tool of that name only reads; `None` if there is none.
    pub fn is_read_only(&self, name: &str) -> Option<bool> {
        self.find(name).ok().map(|e| e.spec.read_only)
    }

    /// Returns the entry of that name; the error lists the nearest names.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<Entry>, Failure> {
        let aliases = self.aliases.read().unwrap_or_else(PoisonError::into_inner);
        let own = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own);
        let real = aliases.get(name).map_or(own, String::as_str);
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = tools.entry(real, self.session.as_ref()) {
            if tools.is_off(real) {
                let text = format!("tool {real} is disabled in tool-access.json");
                return Err(Failure::new(Reason::ToolDenied, text));
            }
            return Ok(Arc::clone(entry));
        }
        let short = name.chars().take(64).collect::<String>();
        let mut text = format!("there is no tool '{}'", short.escape_default());
        let near = tools
            .all
            .keys()
            .map(|k| (strsim::jaro_winkler(k, &short), k))
            .filter(|(s, _)| *s > 0.8);
        if let Some((_, best)) = near.max_by(|a, b| a.0.total_cmp(&b.0)) {
            text.push_str(&format!("; did you mean '{best}'?"));
        }
        Err(Failure::new(Reason::UnknownTool, text))
    }
}

fn unfit(spec: &ToolSpec, what: &str) -> Failure {
    Failure::new(Reason::Internal, format!("tool {}: {what}", spec.name))
}

impl Entry {
    fn of(tool: Arc<dyn Tool>) -> Result<Self, Failure> {
        let spec = tool.spec();
        if !is_tool_name(&spec.name) {
            let text = "model providers accept names of 1 to 64 letters, digits, '_' and '-' only";
            return Err(unfit(&spec, text));
        }
        let schema = ArgumentSchema::compile(&spec.input_schema)
            .map_err(|e| unfit(&spec, &format!("schema: {e}")))?;
        Ok(Self { tool, spec, schema })
    }

    /// Checks arguments against the schema.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), Failure> {
        self.schema.check(arguments).map_err(|error| {
            Failure::new(Reason::InvalidParams, format!("tool {}: {error}", self.spec.name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Output, Permit};

    struct Named(&'static str);

    #[async_trait::async_trait]
    impl Tool for Named {
        fn spec(&self) -> ToolSpec {
            ToolSpec {
                name: self.0.into(),
                paths: &[],
                ..ToolSpec::reading::<()>("named", "Returns its own name.")
            }
        }

        async fn run(&self, _: Permit, _: Value) -> Result<Output, Failure> {
            Output::of("named", &self.0, false)
        }
    }

    #[test]
    fn tools_of_a_session_are_seen_by_that_session_alone() {
        let registry = Registry::default();
        registry.add(Arc::new(Named("common"))).unwrap();
        let (one, two) = (SessionId::new(), SessionId::new());
        let scoped = registry.scoped(&one);
        scoped.cover(Arc::new(Named("mine"))).unwrap();
        let names = |registry: &Registry| -> Vec<String> {
            registry.specs().iter().map(|spec| spec.name.to_string()).collect()
        };
        assert_eq!(names(&scoped), ["common", "mine"]);
        assert_eq!(names(&registry.scoped(&two)), ["common"]);
        assert_eq!(names(&registry), ["common"]);
        assert!(registry.find("mine").is_err() && registry.scoped(&two).find("mine").is_err());
        // A tool of a session never stands in for one of all sessions.
        scoped.cover(Arc::new(Named("common"))).unwrap();
        assert_eq!(names(&scoped), ["common", "mine"]);
        registry.switch([("mine".to_owned(), false)].into());
        assert_eq!(scoped.find("mine").err().unwrap().reason, Reason::ToolDenied);
        scoped.remove("mine");
        scoped.remove("common");
        assert!(registry.has("common") && !scoped.has("mine"));
        assert!(registry.tools.read().unwrap().by_session.is_empty());
    }
}
