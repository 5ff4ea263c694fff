//! Files that cause programs to run later, by their names: written now, they act when a shell, an
//! editor, another agent, git, a package manager or continuous integration next looks at them.
//!
//! A name counts at any depth and in any case, whether the file exists or not: what matters is who
//! reads it later. The published table is `docs/guide/safety.md`, which a test compares with this
//! one.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// Treatment of such a file when a tool or a command would write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AutorunClass {
    /// A build or test file: it is edited as any source, and the question says that it runs code.
    Source,
    /// Each change is asked about in every mode, whatever rules allow it.
    Start,
    /// Cairn itself executes it or reads it as its configuration: closed to every tool.
    Own,
}

/// The class of a file and who runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Autorun {
    pub class: AutorunClass,
    /// The program that reads it, as the subject of a sentence.
    pub reader: &'static str,
}

/// Rows with one reader. A pattern is a name (`.envrc`), the end of a path (`.cargo/config.toml`),
/// everything in a folder (`.vscode/`), or an ending of names (`*.pth`).
struct Group {
    class: AutorunClass,
    reader: &'static str,
    /// Separated by white space.
    patterns: &'static str,
}

const GROUPS: &[Group] = &[
    Group {
        class: AutorunClass::Own,
        reader: "Cairn",
        patterns: ".cairn.json .cairn/ .mcp.json .claude/settings.json .claude/settings.local.json \
            .agents/plugins/",
    },
    Group {
        class: AutorunClass::Start,
        reader: "a shell",
        patterns: ".bash_aliases .bash_login .bash_logout .bash_profile .bashrc .cshrc .elvish/ \
            .environment .inputrc .kshrc .login .logout .mkshrc .oh-my-zsh/ .pam_environment \
            .profile .tcshrc .xonshrc .xprofile .zlogin .zlogout .zprofile .zshenv .zshrc \
            config.fish microsoft.powershell_profile.ps1 profile.ps1",
    },
    Group {
        class: AutorunClass::Start,
        reader: "git",
        patterns: ".gitconfig .githooks/ .git-hooks/ .hgrc .husky/ .huskyrc .huskyrc.json \
            .lefthook.json .lefthook.toml .lefthook.yaml .lefthook.yml .lefthook/ \
            .overcommit.yml .pre-commit-config.yaml .pre-commit-hooks.yaml .simple-git-hooks.cjs \
            .simple-git-hooks.js .simple-git-hooks.json lefthook-local.yml lefthook.json \
            lefthook.toml lefthook.yaml lefthook.yml",
    },
    Group {
        class: AutorunClass::Start,
        reader: "an environment manager",
        patterns: ".direnv/ .direnvrc .env .env.* .envrc .flox/ .miserc.toml .mise.local.toml \
            .mise.toml .mise/ .rtx.toml mise.local.toml mise.toml mise/config.toml",
    },
    Group {
        class: AutorunClass::Start,
        reader: "an editor",
        patterns: "*.code-workspace *.sublime-project .atom/ .dir-locals-2.el .dir-locals.el .emacs \
            .emacs.d/ .exrc .fleet/ .gvimrc .helix/ .idea/ .ideavimrc .kakrc .local.vimrc \
            .lvimrc .nova/ .nvim.lua .nvimrc .run/ .settings/ .spacemacs .theia/ .vim/ .vimrc \
            .vs/ .vscode/ .zed/ _vimrc",
    },
    Group {
        class: AutorunClass::Start,
        reader: "a development container",
        patterns: ".codesandbox/ .devcontainer.json .devcontainer/ .gitpod.dockerfile .gitpod.yml .idx/ \
            .ona/ .replit .stackblitzrc",
    },
    Group {
        class: AutorunClass::Start,
        reader: "a terminal",
        patterns: ".screenrc .tmux.conf .tmux/ .tmuxinator.yml .tmuxinator/ .tmuxp.json .tmuxp.yaml \
            .tmuxp/ .wezterm.lua .zellij/",
    },
    Group {
        class: AutorunClass::Start,
        reader: "an agent",
        patterns: ".agents/ .aider.conf.yml .aider.model.settings.yml .amazonq/ .amp/ \
            .augment-guidelines .augment/ .claude.json .claude/ .cline/ .clinerules .clinerules/ \
            .codeium/ .codex/ .continue/ .continuerc.json .continuerules .copilot/ .crush.json \
            .crush/ .cursor/ .cursorrules .devin/ .factory/ .gemini/ .goose/ .goosehints .junie/ \
            .kilocode/ .kilocodemodes .kiro/ .mcp/ .opencode.json .opencode.jsonc .opencode/ \
            .openhands/ .plandex/ .qwen/ .roo/ .roomodes .roorules .rules .tabnine/ .trae/ \
            .warp/ .windsurf/ .windsurfrules .zencoder/ agent.md agents.md agents.override.md \
            claude.local.md claude.md crush.json crush.md gemini.md mcp.json opencode.json \
            opencode.jsonc qwen.md warp.md",
    },
    Group {
        class: AutorunClass::Start,
        reader: "a package manager",
        patterns: ".bundle/ .cabal/ .cargo/ .condarc .gemrc .m2/ .npmrc .nuget/ .pip/ .pnp.cjs \
            .pnp.loader.mjs .pnpmfile.cjs .pnpmrc .pydistutils.cfg .pypirc .stack/ .yarn/ \
            .yarnrc .yarnrc.yml bunfig.toml node_modules/.bin/ pip.conf pip.ini uv.toml",
    },
    Group {
        class: AutorunClass::Start,
        reader: "an interpreter",
        patterns: "*.pth .erlang .gdbearlyinit .gdbinit .ghci .iex.exs .ipython/ .irbrc .juliarc.jl \
            .jupyter/ .lldbinit .mongorc.js .mongoshrc.js .my.cnf .perldb .pryrc .psqlrc \
            .pythonrc .pythonrc.py .pythonstartup .radare2rc .rdebugrc .renviron .rprofile \
            .sqliterc .venv/bin/ .venv/scripts/ activate.ps1 activate_this.py bin/activate \
            bin/activate.csh bin/activate.fish bin/activate.nu env/bin/ pyvenv.cfg \
            scripts/activate scripts/activate.bat sitecustomize.py usercustomize.py venv/bin/ \
            venv/scripts/",
    },
    Group {
        class: AutorunClass::Start,
        reader: "a build tool",
        patterns: ".bazelrc .bazelrc.user .buckconfig .buckconfig.local .gradle/ .jvmopts .mvn/ \
            .sbtopts .sbtrc .terraformrc .watchmanconfig gradle/wrapper/ gradlew gradlew.bat \
            init.gradle init.gradle.kts mvnw mvnw.cmd terraform.rc",
    },
    Group {
        class: AutorunClass::Start,
        reader: "continuous integration",
        patterns: ".appveyor.yml .azure-pipelines/ .azuredevops/ .bitrise.yml .build.yml .builds/ \
            .buildkite/ .circleci/ .cirrus.star .cirrus.yml .drone.jsonnet .drone.star \
            .drone.yaml .drone.yml .forgejo/ .gitea/ .github/ .gitlab-ci.yaml .gitlab-ci.yml \
            .gitlab/ .harness/ .semaphore/ .teamcity/ .tekton/ .travis.yml .woodpecker.yaml \
            .woodpecker.yml .woodpecker/ appveyor.yml azure-pipelines.yaml azure-pipelines.yml \
            bitbucket-pipelines.yml bitrise.yml buildspec.yaml buildspec.yml cloudbuild.yaml \
            cloudbuild.yml codefresh.yml jenkinsfile jenkinsfile.* screwdriver.yaml wercker.yml",
    },
    Group {
        class: AutorunClass::Start,
        reader: "the system",
        patterns: "*.desktop .config/ .crontab .curlrc .gnupg/ .local/bin/ .local/share/applications/ \
            .local/share/systemd/ .ssh/ .wgetrc .xbindkeysrc .xinitrc .xsession .xsessionrc \
            crontab library/launchagents/ library/launchdaemons/",
    },
    Group {
        class: AutorunClass::Source,
        reader: "git",
        patterns: ".gitattributes .gitignore .gitmodules",
    },
    Group {
        class: AutorunClass::Source,
        reader: "an environment manager",
        patterns: "*.nix .node-version .nvmrc .python-version .ruby-version .tool-versions devbox.json \
            rust-toolchain rust-toolchain.toml",
    },
    Group {
        class: AutorunClass::Source,
        reader: "a build or test",
        patterns: "*.bazel *.bzl *.cabal *.cmake *.config.cjs *.config.cts *.config.js *.config.mjs \
            *.config.mts *.config.ts *.csproj *.fsproj *.gemspec *.gradle *.gradle.kts *.mk \
            *.podspec *.tf *.vbproj *.vcxproj .babelrc .babelrc.js .babelrc.json .eslintrc \
            .eslintrc.cjs .eslintrc.js .eslintrc.json .eslintrc.yml .golangci.toml \
            .golangci.yaml .golangci.yml .mocharc.cjs .mocharc.js .mocharc.json .mocharc.yml \
            .pdbrc .prettierrc.cjs .prettierrc.js .prettierrc.mjs .rspec bin/ brewfile buck \
            build build.rs build.sbt build.zig cargo.toml clippy.toml cmakelists.txt \
            compose.yaml compose.yml composer.json configure configure.ac conftest.py \
            containerfile deno.json deno.jsonc directory.build.props directory.build.targets \
            docker-compose.yaml docker-compose.yml dockerfile dockerfile.* dodo.py earthfile \
            fastfile gemfile global.json gnumakefile go.mod go.work gradle.properties \
            gruntfile.js gulpfile.js justfile .justfile karma.conf.js makefile makefile.* \
            meson.build mix.exs netlify.toml noxfile.py nuget.config nx.json package.json \
            package.swift podfile pom.xml procfile project.clj pyproject.toml pytest.ini \
            rakefile rebar.config sconstruct setup.cfg setup.py stack.yaml taskfile.yaml \
            taskfile.yml tasks.py tiltfile tox.ini tsconfig.json turbo.json vagrantfile \
            vercel.json workspace wscript",
    },
];

/// Examples of an environment file's form, which no program reads.
const EXAMPLES: &[&str] = &[".dist", ".example", ".sample", ".template"];
/// Folders of installed packages, whose own build and test files nobody runs.
const INSTALLED: &[&str] = &["node_modules", "site-packages"];

struct Table {
    /// Patterns that end in a name, by that name: the folders before it, and the row.
    names: HashMap<&'static str, Vec<(Vec<&'static str>, Autorun)>>,
    /// Patterns of folders, by their last component.
    folders: HashMap<&'static str, Vec<(Vec<&'static str>, Autorun)>>,
    endings: Vec<(&'static str, Autorun)>,
    beginnings: Vec<(&'static str, Autorun)>,
    /// Folders that patterns name or lead through, as components.
    above: Vec<(Vec<&'static str>, Autorun)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        names: HashMap::new(),
        folders: HashMap::new(),
        endings: vec![],
        beginnings: vec![],
        above: vec![],
    };
    for group in GROUPS {
        let row = Autorun { class: group.class, reader: group.reader };
        for pattern in group.patterns.split_whitespace() {
            if let Some(ending) = pattern.strip_prefix('*') {
                table.endings.push((ending, row));
                continue;
            }
            if let Some(beginning) = pattern.strip_suffix('*') {
                table.beginnings.push((beginning, row));
                continue;
            }
            let (path, map) = match pattern.strip_suffix('/') {
                Some(folder) => (folder, &mut table.folders),
                None => (pattern, &mut table.names),
            };
            let mut parts: Vec<&str> = path.split('/').collect();
            let count = if pattern.ends_with('/') { parts.len() } else { parts.len() - 1 };
            for end in 1..=count {
                table.above.push((parts[..end].to_vec(), row));
            }
            let last = parts.pop().unwrap_or_default();
            map.entry(last).or_default().push((parts, row));
        }
    }
    table
});

impl Autorun {
    /// Returns the reason for a question about the file at `rel`, as a sentence.
    pub fn reason(&self, rel: &str) -> String {
        let name = rel.rsplit('/').next().unwrap_or(rel);
        match self.class {
            AutorunClass::Own => format!("Cairn itself runs or reads '{rel}'"),
            AutorunClass::Start => {
                format!("{name} can cause programs to run: {} reads it", self.reader)
            }
            AutorunClass::Source => format!("{name} runs code: {} reads it", self.reader),
        }
    }
}

/// Returns the class of the file at `rel`, a path with `/`; the strictest one when several rows
/// name it. `None` for a file that nothing runs by itself.
pub fn autorun(rel: &str) -> Option<Autorun> {
    let folded = folded(rel);
    let parts: Vec<&str> = folded.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    let (name, folders) = parts.split_last()?;
    let table = &*TABLE;
    let mut best: Option<Autorun> = None;
    let mut add = |row: Autorun| {
        if best.is_none_or(|known| row.class > known.class) {
            best = Some(row);
        }
    };
    let lead = |before: &[&str], above: &[&str]| above.ends_with(before);
    for (before, row) in table.names.get(name).into_iter().flatten() {
        if lead(before, folders) {
            add(*row);
        }
    }
    for (at, folder) in folders.iter().enumerate() {
        for (before, row) in table.folders.get(folder).into_iter().flatten() {
            if lead(before, &folders[..at]) {
                add(*row);
            }
        }
    }
    table
        .endings
        .iter()
        .filter(|(e, _)| name.len() > e.len() && name.ends_with(e))
        .for_each(|(_, row)| add(*row));
    let is_example = EXAMPLES.iter().any(|ending| name.ends_with(ending));
    table
        .beginnings
        .iter()
        .filter(|(b, _)| name.len() > b.len() && name.starts_with(b) && !is_example)
        .for_each(|(_, row)| add(*row));
    best.filter(|row| row.class == AutorunClass::Own || !is_installed(name, folders))
}

/// Returns true if a file of this name, in a folder that no row names, may be in the table: a quick
/// look before the complete one.
pub(crate) fn may_be_autorun(name: &str) -> bool {
    let name = folded(name);
    let table = &*TABLE;
    table.names.contains_key(name.as_str())
        || table.endings.iter().any(|(ending, _)| name.ends_with(ending))
        || table.beginnings.iter().any(|(beginning, _)| name.starts_with(beginning))
}

/// Returns true if a row names a folder of this name: what is in it needs the complete look.
pub(crate) fn may_be_folder(name: &str) -> bool {
    TABLE.folders.contains_key(folded(name).as_str())
}

/// Returns the class of a link at `rel`, a path with `/`, that stands in the place of a folder of the
/// table: whatever it leads to is then read there. Links to folders of source files do not count.
pub(crate) fn autorun_link(rel: &str) -> Option<Autorun> {
    let folded = folded(rel);
    let parts: Vec<&str> = folded.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    let rows = TABLE.above.iter().filter(|(above, _)| parts.ends_with(above));
    let strict = rows.map(|(_, row)| *row).filter(|row| row.class != AutorunClass::Source);
    strict
        .max_by_key(|row| row.class)
        .filter(|row| row.class == AutorunClass::Own || !is_installed("", &parts))
}

/// Returns true if a link of this name may stand in the place of a folder of the table: a quick look
/// before [`autorun_link`].
pub(crate) fn may_be_link(name: &str) -> bool {
    let name = folded(name);
    TABLE.above.iter().any(|(above, _)| above.last() == Some(&name.as_str()))
}

/// Returns true for a folder of installed packages.
pub(crate) fn is_package_folder(name: &str) -> bool {
    INSTALLED.contains(&name)
}

/// Returns true for a file of an installed package, besides what its installation adds to the
/// programs that run.
fn is_installed(name: &str, folders: &[&str]) -> bool {
    let Some(at) = folders.iter().rposition(|f| INSTALLED.contains(f)) else { return false };
    let is_program = folders.get(at + 1) == Some(&".bin");
    let is_startup = name.ends_with(".pth") || name.ends_with("customize.py");
    !is_program && !is_startup
}

/// Returns true for the folders of version control, whose contents programs run or trust: nothing in
/// them is written, at any depth, whether they exist or not. Case does not count, as on some file
/// systems.
pub fn is_version_control(name: &str) -> bool {
    [".git", ".hg", ".svn", ".jj"].iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Folds the case of a path as file systems without case do.
fn folded(rel: &str) -> String {
    if rel.is_ascii() {
        return rel.to_ascii_lowercase();
    }
    rel.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Returns one file for each pattern of the table, with its class.
pub fn autorun_examples() -> impl Iterator<Item = (String, AutorunClass)> {
    let one = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(ending), _) => format!("x{ending}"),
        (_, Some(beginning)) => format!("{beginning}local"),
        _ if pattern.ends_with('/') => format!("{pattern}x"),
        _ => pattern.to_owned(),
    };
    GROUPS.iter().flat_map(move |group| {
        group.patterns.split_whitespace().map(move |pattern| (one(pattern), group.class))
    })
}

/// Returns the rows as a table of Markdown, for the guide.
pub fn autorun_table() -> String {
    let mut out = String::from("| treated as | read by | names |\n|---|---|---|\n");
    for group in GROUPS {
        let class = match group.class {
            AutorunClass::Own => "closed",
            AutorunClass::Start => "asked about",
            AutorunClass::Source => "source, marked",
        };
        let names: Vec<String> =
            group.patterns.split_whitespace().map(|p| format!("`{p}`")).collect();
        out.push_str(&format!("| {class} | {} | {} |\n", group.reader, names.join(" ")));
    }
    out
}

/// Further files of roots that the daemon executes or reads: the programs and scripts that hooks,
/// servers and commands of the configuration name.
pub trait NamedPrograms: Send + Sync + std::fmt::Debug {
    /// Returns their paths in the folder of a root, relative to it; one that ends in `/` is a folder
    /// with everything in it. This may read files.
    fn named_in(&self, root: &std::path::Path) -> Arc<Vec<String>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(rel: &str) -> Option<AutorunClass> {
        autorun(rel).map(|row| row.class)
    }

    #[test]
    fn names_count_at_any_depth_and_in_any_case() {
        use AutorunClass::{Own, Source, Start};
        for (rel, want) in [
            (".cairn.json", Some(Own)),
            ("a/b/.Cairn.JSON", Some(Own)),
            (".claude/settings.local.json", Some(Own)),
            ("sub/.CLAUDE/Settings.json", Some(Own)),
            (".claude/settings.json/x", Some(Start)),
            (".claude/skills/x/SKILL.md", Some(Start)),
            (".agents/plugins/p/hooks/hooks.json", Some(Own)),
            (".agents/skills/x/SKILL.md", Some(Start)),
            (".envrc", Some(Start)),
            ("deep/er/.ENVRC", Some(Start)),
            (".env", Some(Start)),
            (".env.production", Some(Start)),
            (".env.example", None),
            (".vscode/tasks.json", Some(Start)),
            (".github/workflows/ci.yml", Some(Start)),
            (".cargo/config.toml", Some(Start)),
            ("node_modules/.bin/tsc", Some(Start)),
            ("node_modules/x/.github/FUNDING.yml", None),
            ("node_modules/x/package.json", None),
            (".venv/bin/activate", Some(Start)),
            (".venv/lib/python3.11/site-packages/x.pth", Some(Start)),
            (".venv/lib/python3.11/site-packages/p/setup.py", None),
            ("gradle/wrapper/gradle-wrapper.properties", Some(Start)),
            ("x/wrapper/gradle-wrapper.properties", None),
            ("Makefile", Some(Source)),
            ("package.json", Some(Source)),
            ("vite.config.ts", Some(Source)),
            ("bin/tool", Some(Source)),
            ("bin/activate", Some(Start)),
            ("src/main.rs", None),
            ("x.envrc.md", None),
            ("vscode", None),
            (".pth", None),
            ("", None),
        ] {
            assert_eq!(class(rel), want, "{rel}");
        }
        // Letters that only some file systems fold.
        assert_eq!(class(".mcp.j\u{17f}on"), Some(Own));
    }

    #[test]
    fn patterns_are_folded_and_named_once() {
        let mut seen = std::collections::HashSet::new();
        for pattern in GROUPS.iter().flat_map(|group| group.patterns.split_whitespace()) {
            assert_eq!(pattern, folded(pattern), "a pattern is compared with folded names");
            assert!(seen.insert(pattern), "{pattern} stands in two rows");
        }
        assert!(seen.len() > 300, "{}", seen.len());
    }
}
