//! Description and name of a project, and the purpose of its folders.

use cairn_protocol::explore::{GitFacts, LayoutEntry};

use super::{facts::Facts, manifests::Manifest, paths};

/// Longest description in characters.
const MAX_DESCRIPTION: usize = 400;
/// Most files of recent activity.
const MAX_ACTIVE: usize = 10;
/// Most folders of a layout.
const MAX_FOLDERS: usize = 30;

/// Returns the name of the repository: that of its remote, else of its folder.
pub fn name(facts: &Facts) -> String {
    let remote = facts.git.as_ref().and_then(|g| g.remote.as_deref());
    // The URL of a clone from a local folder gives no name.
    let hosted = remote.filter(|url| !url.starts_with(['/', '.']) && !url.starts_with("file:"));
    let last = hosted.and_then(|url| url.trim_end_matches('/').rsplit(['/', ':']).next());
    let name = last.map(|n| n.trim_end_matches(".git")).filter(|n| !n.is_empty());
    name.map_or_else(|| facts.folder.clone(), str::to_owned)
}

/// Returns the outermost manifest's description, else the first paragraph of the readme.
pub fn description(facts: &Facts, manifests: &[Manifest]) -> Option<String> {
    let outer =
        manifests.iter().filter(|m| paths::depth(&m.path) == 0).find_map(|m| m.description.clone());
    let readme = readmes(facts).into_iter().find_map(|path| first_paragraph(facts.text(path)?));
    let text = outer
        .map(|d| d.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|d| d.len() > 3)
        .or(readme)?;
    let mut short: String = text.chars().take(MAX_DESCRIPTION).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Some(short)
}

/// Returns the readmes at the top, Markdown first.
pub fn readmes(facts: &Facts) -> Vec<&str> {
    let is =
        |path: &&str| paths::depth(path) == 0 && path.to_ascii_lowercase().starts_with("readme");
    let mut all: Vec<&str> = facts.texts.keys().map(String::as_str).filter(is).collect();
    all.sort_by_key(|path| (!path.to_ascii_lowercase().ends_with(".md"), path.len(), *path));
    all
}

/// Returns the first paragraph of prose: no headings, badges, pictures, tables or markup.
fn first_paragraph(text: &str) -> Option<String> {
    let mut fenced = false;
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        let line = line.trim();
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let underline = line.len() > 2 && line.chars().all(|c| "=-~^*#".contains(c));
        if underline {
            // The text above it was a heading.
            paragraph.clear();
            continue;
        }
        let prose = !fenced
            && !line.is_empty()
            && !line.starts_with(['#', '<', '!', '|', '`', '.', '[', ':', '>', '-', '*', '+'])
            && !line.starts_with("---");
        if prose {
            paragraph.push(line);
        } else if paragraph.join(" ").split_whitespace().count() >= 4 {
            break;
        } else {
            paragraph.clear();
        }
    }
    let text = paragraph.join(" ");
    (!text.is_empty()).then_some(text)
}

/// Returns the top-level folders, by size, with their purposes.
pub fn layout(facts: &Facts) -> Vec<LayoutEntry> {
    let mut all: Vec<LayoutEntry> = facts
        .folders
        .iter()
        .filter(|entry| !entry.path.contains('/'))
        .map(|entry| {
            let role = match role(&entry.path) {
                Some(role) if entry.role.is_empty() => role.to_owned(),
                Some(role) => format!("{role} ({})", entry.role),
                None => entry.role.clone(),
            };
            LayoutEntry { role, ..entry.clone() }
        })
        .collect();
    all.sort_by(|a, b| b.files.cmp(&a.files).then(a.path.cmp(&b.path)));
    all.truncate(MAX_FOLDERS);
    all
}

/// Returns the conventional purpose of a folder with this name.
pub fn role(folder: &str) -> Option<&'static str> {
    let name = folder.to_ascii_lowercase();
    role_in_repository(&name).or_else(|| role_in_program(&name))
}

/// Returns the conventional purpose of a source file with this name.
pub fn role_of_file(stem: &str) -> Option<&'static str> {
    role_in_program(&stem.to_ascii_lowercase())
}

/// The purpose of a folder that stands beside the code or contains programs and libraries.
fn role_in_repository(name: &str) -> Option<&'static str> {
    Some(match name {
        "test" | "tests" | "spec" | "__tests__" | "e2e" => "tests",
        "testing" | "testlib" | "testutil" | "testutils" => "helpers for tests",
        "doc" | "docs" | "documentation" => "documentation",
        "example" | "examples" | "samples" | "demo" => "examples",
        "bench" | "benches" | "benchmark" | "benchmarks" => "benchmarks, performance measurements",
        "script" | "scripts" | "tools" | "hack" | "dev" => "developer scripts",
        "vendor" | "third_party" | "deps" | "external" => "vendored code",
        "bin" | "exe" | "apps" => "programs",
        "cmd" | "cli" | "command" | "commands" => "command line interface: commands",
        "src" | "lib" | "crates" | "packages" | "pkg" | "internal" | "source" | "libs"
        | "modules" => "sources",
        "include" => "public header files of the API",
        "ci" | ".github" | ".circleci" => "CI workflows",
        "migrations" => "database migrations",
        "db" | "database" => "database, persistence",
        "store" | "storage" | "stores" | "repository" | "repositories" => "storage, persistence",
        "web" | "ui" | "frontend" | "www" | "webui" | "gui" => "user interface",
        "tui" => "terminal user interface",
        "client" | "clients" => "client",
        "server" | "backend" | "servers" => "server",
        "api" | "apis" => "API",
        "rest" => "REST API",
        "rpc" | "grpc" => "remote procedure calls (RPC)",
        "http" => "HTTP",
        "deploy" | "docker" | "k8s" | "charts" | "helm" | "infra" | "terraform" => {
            "deployment, container images"
        }
        "config" | "conf" | "configuration" | "settings" => "configuration, settings",
        "defaults" => "default values of the configuration",
        "util" | "utils" | "utilities" | "helper" | "helpers" | "common" | "shared" | "misc" => {
            "helper functions, shared utilities"
        }
        _ => return None,
    })
}

/// The purpose of a folder inside a program.
fn role_in_program(name: &str) -> Option<&'static str> {
    Some(match name {
        "core" | "kernel" => "core",
        "model" | "models" | "entities" | "domain" => "data models",
        "types" | "typing" | "interfaces" => "types",
        "view" | "views" => "views",
        "controller" | "controllers" | "handler" | "handlers" => "request handlers",
        "router" | "routers" | "routes" | "routing" => "routing of requests",
        "middleware" | "middlewares" => "middleware",
        "service" | "services" => "services",
        "plugin" | "plugins" | "extension" | "extensions" | "addons" => "plugins, extensions",
        "adapter" | "adapters" => "adapters",
        "auth" | "authentication" => "authentication",
        "security" | "crypto" | "tls" => "security",
        "oauth" => "OAuth login",
        "session" | "sessions" => "sessions",
        "cache" | "caching" => "cache",
        "event" | "events" => "events",
        "log" | "logger" | "logging" => "logging",
        "parser" | "parsers" | "parse" | "parsing" => "parsing",
        "template" | "templates" | "templating" | "templated" => "templates and their rendering",
        "theme" | "themes" | "styles" => "themes, styles",
        "i18n" | "locale" | "locales" | "l10n" => "translations",
        "mail" | "email" | "mailer" => "e-mail",
        "search" => "search",
        "net" | "network" | "networking" => "network",
        "platform" | "port" | "os" | "arch" => "platform-specific code, portability",
        "proto" | "protobuf" | "protocol" => "protocol messages",
        "json" => "JSON support",
        "shell" => "shell: execution of commands",
        "lsp" => "language server protocol client",
        "agent" | "agents" => "agents",
        "vcs" | "git" => "version control, git",
        "env" | "environment" => "environment",
        "cancel" => "cancellation",
        "worker" | "workers" | "jobs" | "queue" | "tasks" => "background jobs",
        "wrappers" => "wrappers",
        "globals" => "global objects and proxies",
        "ctx" | "context" => "contexts",
        "app" | "application" => "application",
        "workspace" => "workspaces",
        "lease" | "leases" => "leases",
        "embed" => "embedding in other programs",
        "signals" => "signals",
        "console" => "console commands",
        "installer" => "installation",
        "io" => "input and output",
        "filter" | "filters" => "filters",
        "validation" | "validators" => "validation",
        "schema" | "schemas" => "schemas",
        _ => return None,
    })
}

/// True for a folder whose name says nothing of what is in it.
pub fn is_generic(folder: &str) -> bool {
    const GENERIC: &[&str] = &[
        "src",
        "source",
        "sources",
        "lib",
        "libs",
        "internal",
        "pkg",
        "packages",
        "crates",
        "modules",
        "app",
        "apps",
        "include",
        "main",
        "java",
        "kotlin",
        "code",
        "projects",
        "components",
    ];
    GENERIC.contains(&folder.to_ascii_lowercase().as_str())
}

/// Returns facts about git, for a repository.
pub fn git(facts: &Facts) -> Option<GitFacts> {
    let status = facts.git.as_ref().filter(|g| g.is_repository)?;
    let mut counts: std::collections::BTreeMap<&str, u32> = std::collections::BTreeMap::new();
    for path in facts.commits.iter().filter(|c| c.paths.len() <= 50).flat_map(|c| &c.paths) {
        *counts.entry(path).or_default() += 1;
    }
    let mut active: Vec<(&str, u32)> = counts.into_iter().filter(|(_, n)| *n > 1).collect();
    active.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    Some(GitFacts {
        branch: status.branch.clone(),
        head: status.head.clone(),
        changed_files: status.changes.len() as u64,
        active_files: active
            .into_iter()
            .take(MAX_ACTIVE)
            .map(|(path, _)| path.to_owned())
            .collect(),
        recent: facts.commits.iter().take(5).map(|c| c.subject.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extracts_prose_from_markup() {
        for (text, want) in [
            (
                "# X\n\n[![b](u)](v)\n\nA fast tool for things.\nIt does.\n\nMore.",
                Some("A fast tool for things. It does."),
            ),
            (
                "Title\n=====\n\nSome words that are prose here.\n",
                Some("Some words that are prose here."),
            ),
            ("<p>x</p>\n\n```\ncode and more code here\n```\n", None),
            ("", None),
        ] {
            assert_eq!(first_paragraph(text).as_deref(), want, "{text}");
        }
    }
}
