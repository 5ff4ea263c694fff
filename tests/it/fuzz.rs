//! The bodies of the fuzz targets on their corpora and on changes of them, without a fuzzer.

use std::path::Path;

use cairn_test_support::{Rng, random};
use cairn_tests::fuzz::TARGETS;
use serde_json::json;

use crate::{contents::count, sealed::Daemon};

/// Strings that parsers of these inputs treat specially.
const TOKENS: [&str; 16] = [
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    "null",
    "-1",
    "1e999",
    "\u{0}",
    "\u{202e}",
    "$(",
    "<<",
    "'",
    "999999999999999999999",
];

/// Changes an input at up to eight places.
fn mutate(mut data: Vec<u8>, others: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    for _ in 0..rng.usize(1..=8) {
        let at = rng.usize(..=data.len());
        let end = (at + rng.usize(..16)).min(data.len());
        match rng.u8(..5) {
            0 => drop(data.splice(at..end, [])),
            1 => drop(data.splice(at..at, TOKENS[rng.usize(..TOKENS.len())].bytes())),
            2 if at < data.len() => data[at] ^= 1 << rng.u8(..8),
            3 => drop(data.splice(at..at, data[at..end].to_vec().repeat(rng.usize(1..40)))),
            _ => {
                let other = &others[rng.usize(..others.len())];
                let from = rng.usize(..=other.len());
                data.splice(at..end, other[from..].iter().take(64).copied());
            }
        }
    }
    data
}

/// `CAIRN_FUZZ_INPUTS=100000` is the long form; `cargo fuzz run TARGET` guides the changes.
#[test]
fn targets_survive_changes_of_their_corpora() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut rng = random("fuzz targets");
    let inputs = count("CAIRN_FUZZ_INPUTS", 300);
    for (name, run) in TARGETS {
        let entries = std::fs::read_dir(corpora.join(name)).unwrap();
        let mut corpus: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        corpus.sort();
        let corpus: Vec<Vec<u8>> = corpus.iter().map(|p| std::fs::read(p).unwrap()).collect();
        assert!(corpus.len() >= 3, "{name} has a corpus");
        corpus.iter().for_each(|data| run(data));
        for _ in 0..inputs {
            let start = corpus[rng.usize(..corpus.len())].clone();
            run(&mutate(start, &corpus, &mut rng));
        }
    }
}

/// Skills and plugins whose manifests are changed at random: the daemon starts, lists the valid ones
/// with their names or errors, and logs no panic.
#[tokio::test]
async fn changed_manifests_are_listed_or_refused() {
    const SKILL: &str = r#"{"id": "s", "version": "1", "tools": ["git_diff"], "promptBlock": "x",
        "policy": {"deny": ["write_file"]}}"#;
    const AGENT_SKILL: &str =
        "---\nname: s\ndescription: >-\n  Reads.\nlicense: 'MIT'\n---\n\n# S\n";
    const PLUGIN: &str = r#"{"name": "p", "version": "2", "commands": "./commands", "hooks": {}}"#;
    const SERVERS: &str =
        r#"{"mcpServers": {"m": {"url": "http://[::1]:1/", "headers": {"a": "b"}}}}"#;
    const HOOKS: &str =
        r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    let manifests = [SKILL, AGENT_SKILL, PLUGIN, SERVERS, HOOKS];
    let all: Vec<Vec<u8>> = manifests.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut rng = random("manifests");
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let mut write = |path: &str, manifest: usize| {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, mutate(all[manifest].clone(), &all, &mut rng)).unwrap();
    };
    let inputs = count("CAIRN_FUZZ_MANIFESTS", 30);
    let mut plugins = Vec::new();
    for n in 0..inputs {
        write(&format!("home/config/skills/j{n}/skill.json"), 0);
        write(&format!("home/config/skills/m{n}/SKILL.md"), 1);
        write(&format!("plugins/{n}/.claude-plugin/plugin.json"), 2);
        write(&format!("plugins/{n}/.mcp.json"), 3);
        write(&format!("plugins/{n}/hooks/hooks.json"), 4);
        plugins.push(dir.path().join(format!("plugins/{n}")));
    }
    let config = json!({"agentPlugins": {"folders": plugins}});
    std::fs::write(home.join("config/config.json"), config.to_string()).unwrap();
    let daemon = Daemon::start_in(&home, &[]);
    let mut raw = daemon.client().await;
    let listed = raw.ok("plugin.list", json!({})).await;
    assert!(!listed["data"].as_array().unwrap().is_empty(), "{listed}");
    raw.ok("skill.list", json!({})).await;
    raw.ok("mcp.list", json!({})).await;
    assert!(!crate::sealed::logged(&home).contains("panicked"));
}
