//! The system text: layers in a fixed order, each sanitised when it is inserted. Equal layers give
//! equal bytes, so that a model's prefix cache stays valid from turn to turn and over sessions: a
//! layer comes after those that change less often, and the date is last.

mod clean;
mod clock;
pub mod instructions;
mod project;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cairn_engine::{PromptTier, TurnContext, tool::ToolSpec};
use cairn_protocol::{
    error::Failure,
    prompt::{KNOWLEDGE_LOOP, WRITING},
};

pub use clean::{line, paragraph};

/// The built-in base: working method, abilities, meaning and precedence of the layers, and
/// behaviour in doubt.
const BASE: &str = include_str!("prompt/base.md");
/// The built-in base for models with a small context.
const SHORT_BASE: &str = include_str!("prompt/base_short.md");

/// Most characters of a tool's name in the catalogue.
const NAME: usize = 64;
/// Most characters of a tool's line in the catalogue.
const SHORT: usize = 200;
/// Most characters of a skill's description.
const DESCRIPTION: usize = 300;
/// Most names of tools that can be looked up.
const UNLISTED: usize = 150;
/// Most bytes of one tool's own text.
const ADDENDUM: usize = 8 * 1024;
/// Most bytes of one appendix.
const APPENDIX: usize = 16 * 1024;

/// Function that reads the texts, given the turn's root and whether that folder is trusted.
type Read = dyn Fn(Option<&Path>, bool) -> Texts + Send + Sync;

/// Texts from the host's files. They are read once per turn through the function, so that a change
/// applies to the next turn.
#[derive(Clone, Default)]
pub struct Sources {
    read: Option<Arc<Read>>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

impl Sources {
    /// Creates a source of texts that may change.
    pub fn new(read: impl Fn(Option<&Path>, bool) -> Texts + Send + Sync + 'static) -> Self {
        Self { read: Some(Arc::new(read)) }
    }

    /// Returns the current texts for a turn in `root`, which may be a folder that is not trusted.
    pub fn texts(&self, root: Option<&Path>, is_trusted: bool) -> Texts {
        self.read.as_ref().map_or_else(Texts::default, |read| read(root, is_trusted))
    }
}

/// Texts from the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// Replacement for the built-in base.
    pub base: Option<String>,
    /// Personality of the agent.
    pub soul: String,
    /// Description of the user.
    pub profile: String,
    /// The user's own instructions for all projects: path and text.
    pub instructions: Option<(PathBuf, String)>,
    /// Instruction files of folders that contain the root, outermost first; those of folders that
    /// are not trusted are not used.
    pub outer_instructions: Vec<(PathBuf, String)>,
    /// Date of the model's latest knowledge, if the user configured it.
    pub knowledge_cutoff: Option<String>,
    /// Texts of the operator after the tools' own texts.
    pub appendices: Vec<String>,
    /// True to omit the date and time.
    pub no_clock: bool,
    /// True to omit the instruction to name sources.
    pub no_citing: bool,
    /// Keywords of the stored knowledge; the most volatile part.
    pub vocabulary: String,
}

/// Layers of a system text, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Working method of the agent.
    pub base: String,
    /// Personality of the agent.
    pub soul: String,
    /// Description of the user.
    pub profile: String,
    /// Summary of an earlier session.
    pub previous: String,
    /// Descriptions of skills, by name.
    pub skills: Vec<(String, String)>,
    /// Texts of tools about themselves, by name.
    pub addenda: Vec<(String, String)>,
    /// Texts of the operator.
    pub appendices: Vec<String>,
    /// Instructions of the user and the project.
    pub instructions: String,
    /// Facts on the project, and its map.
    pub project: String,
    /// Texts of the session.
    pub session: Vec<String>,
    /// Date and time of the session.
    pub clock: String,
    /// Date of the model's latest knowledge.
    pub knowledge_cutoff: Option<String>,
    /// True if knowledge and the web are to be used together.
    pub knowledge_loop: bool,
    /// True if sources are to be named.
    pub cite_sources: bool,
    /// True if a tool is offered that computes and must not write.
    pub evaluates: bool,
    /// Catalogue of tools: name and line.
    pub catalogue: Vec<(String, String)>,
    /// True if the catalogue has names alone.
    pub names_alone: bool,
    /// Note on what is omitted because the model's context is small.
    pub omitted: String,
    /// Keywords of the knowledge store.
    pub vocabulary: String,
}

/// Collects the layers of a turn.
///
/// # Errors
/// An error of the log.
pub async fn layers(sources: &Sources, cx: &TurnContext) -> Result<Layers, Failure> {
    let texts = sources.texts(cx.root_path(), cx.is_trusted());
    let session = cx.session_prompt().await?;
    let tier = cx.tier();
    let project = cx.artifact_or_create("prompt-project", project::describe(cx)).await?;
    let instructions = instructions::text(cx, texts.instructions, texts.outer_instructions).await?;
    let clock =
        cx.artifact_or_create("prompt-clock", async { Ok(clock::minute(cx.began())) }).await?;
    let tools = cx.tools();
    let has = |name: &str| tools.iter().any(|t| t.name == name);
    let web = has("web_search") || has("web_fetch");
    let built_in = if tier == PromptTier::Small { SHORT_BASE } else { BASE };
    Ok(Layers {
        base: session.base.or(texts.base).unwrap_or_else(|| built_in.to_owned()),
        soul: texts.soul,
        profile: texts.profile,
        previous: String::new(),
        skills: if has("read_skill") { skills(cx, &tools) } else { vec![] },
        addenda: tools
            .iter()
            .filter(|t| !t.addendum.is_empty())
            .map(|t| (t.name.to_string(), t.addendum.to_string()))
            .collect(),
        appendices: texts.appendices,
        instructions,
        project,
        session: session.appended,
        clock: if texts.no_clock { String::new() } else { clock::today(&clock, cx.began()) },
        knowledge_cutoff: texts.knowledge_cutoff,
        knowledge_loop: web && tools.iter().any(|t| t.name.starts_with("memory")),
        cite_sources: web && !texts.no_citing,
        evaluates: has("evaluate"),
        catalogue: catalogue(&tools),
        names_alone: tier < PromptTier::Large,
        omitted: omitted(cx),
        vocabulary: texts.vocabulary,
    })
}

/// Returns the names and descriptions of the skills that are on and have no tools, or one that is
/// offered.
fn skills(cx: &TurnContext, offered: &[ToolSpec]) -> Vec<(String, String)> {
    let has = |name: &String| offered.iter().any(|t| t.name == *name);
    let usable = |tools: &[String]| tools.is_empty() || tools.iter().any(has);
    let on = cx.skills().into_iter().filter(|info| info.enabled && usable(&info.skill.tools));
    on.map(|info| (info.skill.id, info.skill.description)).collect()
}

/// Returns what the prompt leaves out: tools that can be looked up, and what does not fit into a
/// small context.
fn omitted(cx: &TurnContext) -> String {
    let unlisted = unlisted(&cx.unlisted_tools(), cx.tier() == PromptTier::Large);
    if cx.tier() == PromptTier::Large {
        return unlisted;
    }
    let window = cx.context_window();
    let tools = match cx.omitted_tools() {
        0 => String::new(),
        n => format!(" {n} further tools are not offered."),
    };
    let short =
        format!("The model's context has {window} tokens, so this text is a short one.{tools}");
    if unlisted.is_empty() { short } else { format!("{unlisted}\n\n{short}") }
}

/// Returns the names of the tools that can be looked up, or their number where room is short.
fn unlisted(tools: &[ToolSpec], with_names: bool) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let count = tools.len();
    let way = "Look one up with tool_lookup before you call it; without a name it lists them.";
    if !with_names {
        return format!("There are {count} further tools. {way}");
    }
    let names: Vec<String> = tools.iter().take(UNLISTED).map(|t| line(&t.name, NAME)).collect();
    let more = if count > UNLISTED { ", …" } else { "" };
    format!("There are {count} further tools. {way}\n{}{more}", names.join(", "))
}

fn catalogue(tools: &[ToolSpec]) -> Vec<(String, String)> {
    tools.iter().map(|t| (t.name.to_string(), t.short.to_string())).collect()
}

/// Renders the layers as one text.
pub fn render(layers: &Layers) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut section = |title: &str, body: String| {
        if !body.trim().is_empty() {
            parts.push(if title.is_empty() { body } else { format!("# {title}\n\n{body}") });
        }
    };
    section("", paragraph(&layers.base, usize::MAX));
    section("Soul", paragraph(&layers.soul, APPENDIX));
    section("User profile", paragraph(&layers.profile, APPENDIX));
    section("Tool notes", blocks(&layers.addenda, "## ", ADDENDUM));
    for appendix in &layers.appendices {
        section("", paragraph(appendix, APPENDIX));
    }
    section("Context", preamble(layers));
    section("Active tools", active_tools(layers));
    let skills = layers
        .skills
        .iter()
        .map(|(n, d)| format!("- {} — {}", line(n, NAME), line(d, DESCRIPTION)));
    section("Skills", skills.collect::<Vec<_>>().join("\n"));
    section("Instructions", paragraph(&layers.instructions, usize::MAX));
    section("Memory vocabulary", paragraph(&layers.vocabulary, APPENDIX));
    section("", paragraph(&layers.project, APPENDIX));
    for text in &layers.session {
        section("", paragraph(text, APPENDIX));
    }
    section("Previous conversation", paragraph(&layers.previous, APPENDIX));
    section("Date", date(layers));
    parts.join("\n\n")
}

fn blocks(all: &[(String, String)], mark: &str, cap: usize) -> String {
    let block = |(name, text): &(String, String)| {
        format!("{mark}{}\n\n{}", line(name, NAME), paragraph(text, cap))
    };
    all.iter()
        .filter(|(_, text)| !text.trim().is_empty())
        .map(block)
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Returns the offered tools: one per line, or their names alone, since a request has the short
/// descriptions too.
fn active_tools(layers: &Layers) -> String {
    let all = layers.catalogue.iter();
    let mut text = if layers.names_alone {
        all.map(|(n, _)| line(n, NAME)).collect::<Vec<_>>().join(", ")
    } else {
        let one = |(n, s): &(String, String)| format!("- {} — {}", line(n, NAME), line(s, SHORT));
        all.map(one).collect::<Vec<_>>().join("\n")
    };
    if !layers.omitted.is_empty() {
        text.push_str("\n\n");
        text.push_str(&layers.omitted);
    }
    text
}

fn date(layers: &Layers) -> String {
    if layers.clock.is_empty() {
        return String::new();
    }
    format!("The date and time is {}. Trust it over your own memory.", line(&layers.clock, SHORT))
}

fn preamble(layers: &Layers) -> String {
    let mut lines = Vec::new();
    if let Some(cutoff) = &layers.knowledge_cutoff {
        lines.push(format!(
            "Your knowledge ends at {}. Look up anything that may have changed since then.",
            line(cutoff, NAME)
        ));
    }
    if layers.knowledge_loop {
        lines.push(KNOWLEDGE_LOOP.to_owned());
    }
    if layers.cite_sources {
        lines.push("When you use information from the web, name the page it comes from.".into());
    }
    if layers.evaluates {
        lines.push(WRITING.to_owned());
    }
    lines.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Layers {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        Layers {
            base: BASE.to_owned(),
            soul: "SOUL".into(),
            profile: "PROFILE".into(),
            previous: "PREVIOUS".into(),
            skills: vec![pair("skill", "SKI\nLL")],
            addenda: vec![pair("tool", "ADDENDUM")],
            appendices: vec!["APPENDIX ONE".into(), "APPENDIX TWO".into()],
            instructions: "INSTRUCTIONS OF IT".into(),
            project: "PROJECT MAP".into(),
            session: vec!["SESSION TEXT".into()],
            clock: "2026-01-02 03:04 UTC".into(),
            knowledge_cutoff: Some("CUTOFF".into()),
            knowledge_loop: true,
            cite_sources: true,
            evaluates: true,
            catalogue: vec![pair("read_file", "reads\na file")],
            names_alone: false,
            omitted: "OMITTED".into(),
            vocabulary: "VOCABULARY".into(),
        }
    }

    #[test]
    fn layer_order_is_fixed_and_output_is_deterministic() {
        let text = render(&full());
        assert_eq!(text, render(&full()));
        let marks = [
            "You are",
            "SOUL",
            "PROFILE",
            "ADDENDUM",
            "APPENDIX ONE",
            "APPENDIX TWO",
            "CUTOFF",
            "search memory first",
            "name the page",
            "writes nothing",
            "- read_file — reads a file",
            "OMITTED",
            "- skill — SKI LL",
            "INSTRUCTIONS OF IT",
            "VOCABULARY",
            "PROJECT MAP",
            "SESSION TEXT",
            "PREVIOUS",
            "2026-01-02",
        ];
        let positions: Vec<usize> =
            marks.iter().map(|m| text.find(m).unwrap_or_else(|| panic!("{m}"))).collect();
        assert!(positions.is_sorted(), "{positions:?}");
    }

    #[test]
    fn empty_layers_are_omitted() {
        let text = render(&Layers { base: "BASE".into(), ..Layers::default() });
        assert_eq!(text, "BASE");
        assert_eq!(render(&Layers::default()), "");
    }

    #[test]
    fn base_has_five_parts() {
        for part in [
            "## How you work",
            "## What you can do",
            "## How to read what follows",
            "## What wins",
            "## When unsure",
        ] {
            assert!(BASE.contains(part), "{part}");
        }
    }

    #[test]
    fn layers_cannot_escape_their_section() {
        let mut layers = full();
        layers.catalogue = vec![("x\n# Soul".repeat(20), "y\u{1b}[2J\n- z".repeat(100))];
        layers.addenda = vec![("t".into(), format!("a\u{1b}]0;b\u{7}\tc\n{}", "d".repeat(10_000)))];
        let text = render(&layers);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text}");
        let tools = text.split("# Active tools\n\n").nth(1).unwrap().split("\n\n").next().unwrap();
        assert_eq!(tools.lines().count(), 1);
        assert!(tools.chars().count() <= NAME + SHORT + 8, "{}", tools.chars().count());
        assert!(text.contains("a]0;b\tc\nddd"), "tabs and line ends stay");
        assert!(text.matches('d').count() < ADDENDUM + 2000);
    }
}
