//! The servers that may be started, and the language of each file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A server and the files that it is for.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    pub name: String,
    /// Command lines, of which the first that is installed is used; none disables the server.
    pub commands: Vec<Vec<String>>,
    /// Extensions of its files.
    pub extensions: Vec<String>,
    /// Files in the folder of a project, of which the outermost is opened.
    pub markers: Vec<String>,
    /// Options of its start.
    pub options: Value,
    /// True if it notifies when it has loaded the project, before which its diagnostics are empty.
    pub reports_status: bool,
}

/// A program as it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub argv: Vec<String>,
    /// Folders that it needs, besides those of the system.
    pub readable: Vec<PathBuf>,
}

/// Name, command lines, extensions, markers.
type Row = (
    &'static str,
    &'static [&'static [&'static str]],
    &'static [&'static str],
    &'static [&'static str],
);

const KNOWN: &[Row] = &[
    ("rust-analyzer", &[&["rust-analyzer"]], &["rs"], &["Cargo.toml", "rust-project.json"]),
    (
        "pyright",
        &[&["pyright-langserver", "--stdio"], &["basedpyright-langserver", "--stdio"]],
        &["py", "pyi"],
        &["pyproject.toml", "pyrightconfig.json", "setup.py", "setup.cfg", "requirements.txt"],
    ),
    (
        "typescript",
        &[&["typescript-language-server", "--stdio"]],
        &["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"],
        &["tsconfig.json", "jsconfig.json", "package.json"],
    ),
    (
        "clangd",
        &[&["clangd", "--background-index=false"]],
        &["c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx"],
        &["compile_commands.json", "compile_flags.txt", ".clangd"],
    ),
    ("gopls", &[&["gopls"]], &["go"], &["go.work", "go.mod"]),
];

/// Returns the servers that are known without a configuration.
pub fn known_servers() -> Vec<ServerSpec> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let row = |(name, commands, extensions, markers): &Row| ServerSpec {
        name: (*name).to_owned(),
        commands: commands.iter().map(|command| owned(command)).collect(),
        extensions: owned(extensions),
        markers: owned(markers),
        options: options(name),
        reports_status: *name == "rust-analyzer",
    };
    KNOWN.iter().map(row).collect()
}

fn options(name: &str) -> Value {
    match name {
        // Its diagnostics do not need the caches of completion, which take long.
        "rust-analyzer" => json!({"cachePriming": {"enable": false}}),
        _ => Value::Null,
    }
}

/// Returns the name of a file's language in the protocol.
pub fn language_of(path: &Path) -> String {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let known = match extension.as_str() {
        "rs" => "rust",
        "py" | "pyi" => "python",
        "ts" | "mts" | "cts" => "typescript",
        "tsx" => "typescriptreact",
        "js" | "mjs" | "cjs" => "javascript",
        "jsx" => "javascriptreact",
        "h" | "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => "cpp",
        "rb" => "ruby",
        "kt" | "kts" => "kotlin",
        "sh" | "bash" => "shellscript",
        "cs" => "csharp",
        _ => return extension,
    };
    known.to_owned()
}
