//! Instruction files and skills of trusted and other folders, and undoing, as a model sees them.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cairn_agent::{
    Coder,
    prompt::{Sources, Texts},
};
use cairn_llm::{Script, Scripted, ScriptedAnswer, ScriptedCall, Step};
use cairn_protocol::{
    event::AgentEvt,
    model::{Message, Part},
    prompt::PromptShowParams,
    session::SessionCreateParams,
    skill::{SkillFile, SkillInfo},
    tool::ToolCallParams,
    turn::{Outcome, RunResult},
};
use serde_json::{Value, json};

use crate::stage::{Stage, allow_all, quick, text_answer};

fn call(name: &str, arguments: Value) -> ScriptedAnswer {
    let call = ScriptedCall { id: None, name: name.into(), arguments };
    ScriptedAnswer::new(vec![Step::Call(call)])
}

/// A stage with a session in a folder of files.
struct Project {
    stage: Stage,
    root: PathBuf,
}

impl Project {
    async fn new(files: &[(&str, &str)], trusted: bool, script: Scripted) -> Self {
        Self::with(files, trusted, script, quick()).await
    }

    async fn with(
        files: &[(&str, &str)],
        trusted: bool,
        script: Scripted,
        settings: cairn_engine::TurnSettings,
    ) -> Self {
        let mut stage = Stage::with(script, allow_all(), settings).await;
        let root = stage.dir.path().canonicalize().unwrap().join("project");
        for (path, text) in files {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        }
        let inside = root.clone();
        stage.engine.set_trust(Arc::new(move |folder: &std::path::Path| {
            trusted && folder.starts_with(&inside)
        }));
        let name = root.to_string_lossy().into_owned();
        let params = serde_json::from_value(json!({"path": name})).unwrap();
        stage.engine.add_root(params).await.unwrap();
        let params = SessionCreateParams { root: Some(name), ..Default::default() };
        stage.session = stage.engine.create_session(params).await.unwrap().session_id;
        Self { stage, root }
    }

    async fn turn(&self, text: &str) -> RunResult {
        let result = self.stage.turn(text).await;
        assert_eq!(result.status, Outcome::Completed, "{result:?}");
        result
    }

    fn last_system(&self) -> String {
        self.stage.script.requests().last().unwrap().system.clone()
    }

    /// Returns the texts of the user's messages in the last request.
    fn user_texts(&self) -> Vec<String> {
        let request = self.stage.script.requests().pop().unwrap();
        let texts = request.messages.into_iter().filter_map(|message| match message {
            Message::User { parts } => Some(parts),
            _ => None,
        });
        texts
            .flatten()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text),
                Part::Image { .. } => None,
            })
            .collect()
    }

    async fn warnings(&self) -> Vec<String> {
        let all = self.stage.records().await.into_iter();
        all.filter_map(|evt| match evt {
            AgentEvt::Warning { op, message } if op == "instructions" => Some(message),
            _ => None,
        })
        .collect()
    }
}

const FILES: &[(&str, &str)] = &[
    ("AGENTS.md", "ROOT RULE: use tabs.\n"),
    ("CLAUDE.md", "CLAUDE RULE.\n"),
    ("web/AGENTS.md", "WEB RULE: no jQuery.\n"),
    ("web/deep/CLAUDE.md", "DEEP RULE.\n"),
    ("web/deep/a.js", "let a = 1;\n"),
    ("web/deep/b.js", "let b = 1;\n"),
    ("other/AGENTS.md", "OTHER RULE.\n"),
];

#[tokio::test]
async fn instructions_of_trusted_folder_are_used_and_nested_ones_follow_a_read() {
    let script = Scripted::new(vec![
        call("read_file", json!({"path": "web/deep/a.js"})),
        call("edit_file", json!({"path": "web/deep/a.js", "old_text": "1", "new_text": "2"})),
        text_answer("done"),
        call("read_file", json!({"path": "web/deep/b.js"})),
        text_answer("done"),
    ]);
    let project = Project::new(FILES, true, script).await;
    project.turn("go").await;
    let system = project.last_system();
    assert!(system.contains("# Instructions\n") && system.contains("ROOT RULE: use tabs."));
    for absent in ["CLAUDE RULE", "WEB RULE", "DEEP RULE", "OTHER RULE"] {
        assert!(!system.contains(absent), "{absent}");
    }
    let texts = project.user_texts();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[1].starts_with("Instructions from web/AGENTS.md, for the files below web/:"));
    assert!(texts[1].contains("WEB RULE: no jQuery."));
    assert!(texts[2].contains("web/deep/CLAUDE.md") && texts[2].contains("DEEP RULE."));
    // A later turn has them already.
    project.turn("again").await;
    assert_eq!(project.user_texts().len(), 4);
    assert_eq!(project.warnings().await, Vec::<String>::new());
}

#[tokio::test]
async fn instructions_and_skills_of_untrusted_folder_are_not_used_and_the_user_is_notified() {
    let script = Scripted::new(vec![
        call("read_file", json!({"path": "web/deep/a.js"})),
        text_answer("done"),
        text_answer("again"),
    ]);
    let project = Project::new(FILES, false, script).await;
    project.stage.engine.set_skills(Arc::new(|root: Option<&Path>| {
        root.map(|_| skill("project-skill")).into_iter().collect()
    }));
    project.turn("go").await;
    let requests = format!("{:?}", project.stage.script.requests());
    assert!(!requests.contains(" RULE") && !requests.contains("project-skill"));
    project.turn("and").await;
    let warnings = project.warnings().await;
    assert_eq!(warnings.len(), 1, "only in the first turn: {warnings:?}");
    assert!(warnings[0].starts_with("AGENTS.md") && warnings[0].contains("'cairn trust'"));
}

#[tokio::test]
async fn nearer_file_follows_outer_ones_and_the_users_own_comes_first() {
    let project =
        Project::new(&[("CLAUDE.md", "CLAUDE RULE.")], true, Scripted::new(vec![text_answer("a")]))
            .await;
    let inner = project.root.join("outer/AGENTS.md");
    let sources = Sources::new(move |root, is_trusted| {
        assert!(root.is_some() && is_trusted);
        Texts {
            instructions: Some(("/config/AGENTS.md".into(), "USER RULE.".into())),
            outer_instructions: vec![
                ("/elsewhere/AGENTS.md".into(), "UNTRUSTED RULE.".into()),
                (inner.clone(), "OUTER RULE.".into()),
            ],
            ..Texts::default()
        }
    });
    let stage = Stage::with_agent(Scripted::new(vec![text_answer("a")]), Coder::new(sources)).await;
    let root = project.root.clone();
    stage.engine.set_trust(Arc::new(move |folder: &std::path::Path| folder.starts_with(&root)));
    let name = project.root.to_string_lossy().into_owned();
    stage.engine.add_root(serde_json::from_value(json!({"path": name})).unwrap()).await.unwrap();
    let params = SessionCreateParams { root: Some(name), ..Default::default() };
    let session = stage.engine.create_session(params).await.unwrap().session_id;
    let system = stage
        .engine
        .show_prompt(PromptShowParams { session_id: session, policy: None })
        .await
        .unwrap()
        .system;
    let at = |text: &str| system.find(text).unwrap_or_else(|| panic!("{text}: {system}"));
    assert!(at("USER RULE.") < at("OUTER RULE.") && at("OUTER RULE.") < at("CLAUDE RULE."));
    assert!(!system.contains("UNTRUSTED RULE."));
}

#[tokio::test]
async fn instructions_are_read_again_after_compaction() {
    let script =
        Scripted::new(vec![text_answer("one"), text_answer("SUMMARY"), text_answer("two")]);
    let project = Project::new(&[("AGENTS.md", "OLD RULE.")], true, script).await;
    project.turn(&format!("go {}", "word ".repeat(9000))).await;
    std::fs::write(project.root.join("AGENTS.md"), "NEW RULE.").unwrap();
    assert!(project.last_system().contains("OLD RULE."));
    project.stage.engine.compress(&project.stage.session).await.unwrap();
    project.turn("and").await;
    assert!(project.last_system().contains("NEW RULE."), "{}", project.last_system());
}

fn skill(id: &str) -> SkillInfo {
    let skill = SkillFile {
        id: id.into(),
        version: String::new(),
        description: "Does a kind of work.".into(),
        prompt_block: Some("THE TEXT OF THE SKILL".into()),
        tools: vec![],
        policy: Default::default(),
    };
    SkillInfo { skill, enabled: true, reason: None, folder: None }
}

#[tokio::test]
async fn skill_text_is_read_by_a_call_and_only_its_description_is_in_the_prompt() {
    let script = Scripted::new(vec![
        call("read_skill", json!({"name": "pdf"})),
        call("read_skill", json!({"name": "nothing"})),
        text_answer("done"),
    ]);
    let project = Project::new(&[("a.txt", "a")], true, script).await;
    project.stage.engine.set_skills(Arc::new(|root: Option<&Path>| {
        root.map(|_| skill("pdf")).into_iter().collect()
    }));
    project.turn("go").await;
    let requests = project.stage.script.requests();
    assert!(requests[0].system.contains("- pdf — Does a kind of work."));
    assert!(requests.iter().all(|r| !r.system.contains("THE TEXT OF THE SKILL")));
    let results: Vec<&str> = requests[2]
        .messages
        .iter()
        .filter_map(|m| match m {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert!(results[0].starts_with("THE TEXT OF THE SKILL"), "{results:?}");
    assert!(results[1].contains("no skill is named 'nothing'; the skills are: pdf"));
}

#[tokio::test]
async fn model_is_notified_of_undone_turns_and_several_can_be_undone() {
    let edit = |old: &str, new: &str| {
        call("edit_file", json!({"path": "a.txt", "old_text": old, "new_text": new}))
    };
    let script = Scripted::of(Script {
        answers: vec![
            call("read_file", json!({"path": "a.txt"})),
            edit("one", "two"),
            text_answer("first"),
            edit("two", "three"),
            text_answer("second"),
            text_answer("third"),
            text_answer("fourth"),
        ],
        ..Script::default()
    });
    let project = Project::new(&[("a.txt", "one\n")], false, script).await;
    project.turn("first").await;
    project.turn("second").await;
    let read = || std::fs::read_to_string(project.root.join("a.txt")).unwrap();
    assert_eq!(read(), "three\n");
    for (turn, content) in [("t1", "two\n"), ("t0", "one\n")] {
        let params = ToolCallParams {
            session_id: project.stage.session.clone(),
            name: "undo_turn".into(),
            arguments: json!({"turnId": turn}),
        };
        let result = project.stage.engine.call_tool(params, None).await.unwrap();
        assert!(result.ok, "{result:?}");
        assert_eq!(read(), content);
    }
    project.turn("what now?").await;
    let texts = project.user_texts();
    let notes: Vec<&String> = texts.iter().filter(|t| t.contains("user undid")).collect();
    assert_eq!(notes.len(), 2, "{texts:?}");
    assert!(notes[0].contains("a.txt"), "{notes:?}");
    // The notes belong to that turn; a later one has no further ones, and equal messages before it.
    project.turn("and now?").await;
    let later = project.user_texts();
    assert_eq!(later[..texts.len()], texts[..]);
    assert_eq!(later.len(), texts.len() + 1);
}

#[tokio::test]
async fn long_read_is_complete_and_a_longer_one_names_the_rest() {
    let text: String = (1..=800).map(|n| format!("line number {n} of a file\n")).collect();
    let script = Scripted::new(vec![
        call("read_file", json!({"path": "long.txt"})),
        call("read_file", json!({"path": "long.txt", "offset": 501})),
        text_answer("done"),
    ]);
    let project = Project::new(&[("long.txt", &text)], false, script).await;
    project.turn("go").await;
    let request = project.stage.script.requests().pop().unwrap();
    let results: Vec<String> = request
        .messages
        .into_iter()
        .filter_map(|m| match m {
            Message::Tool { content, .. } => Some(content),
            _ => None,
        })
        .collect();
    assert!((1..=500).all(|n| results[0].contains(&format!("{n}|line number {n} of"))));
    let end = "[long.txt: lines 1 to 500 of 800; for the rest call read_file with offset 501]";
    assert!(results[0].ends_with(end), "{}", &results[0][results[0].len() - 200..]);
    assert!(results[1].ends_with("[long.txt: lines 501 to 800 of 800]"));
}
