//! Ruby, PHP, Swift, Elixir, .NET and containers.

use regex::Regex;
use serde_json::Value;

use super::{Manifest, paths, quoted};

/// Parses a `Gemfile` of Bundler.
pub fn gemfile(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "bundler");
    let dir = paths::folder(path);
    if dir.is_empty() {
        manifest.build.push("bundle install".into());
        manifest.test.push(
            if content.contains("rspec") { "bundle exec rspec" } else { "bundle exec rake test" }
                .into(),
        );
        if content.contains("'rails'") || content.contains("\"rails\"") {
            manifest.run.push("bin/rails server".into());
        }
    }
    manifest.start(
        vec![paths::join(dir, "config.ru")],
        "server",
        "Rack application (config.ru)".into(),
        false,
    );
    manifest
}

/// Reads a gem's specification.
pub fn gemspec(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "gem");
    let dir = paths::folder(path);
    let field = |name: &str| {
        let line = content
            .lines()
            .map(str::trim)
            .find(|l| l.contains(&format!(".{name} ")) || l.contains(&format!(".{name}=")))?;
        quoted(line.split_once('=')?.1).map(str::to_owned)
    };
    let stem = paths::file_name(path).trim_end_matches(".gemspec").to_owned();
    let name = field("name")
        .or_else(|| {
            quoted(content.split_once("Specification.new")?.1.lines().next()?).map(str::to_owned)
        })
        .unwrap_or(stem);
    manifest.description = field("summary");
    let file = name.replace('-', "/");
    let source_paths = vec![
        paths::join(dir, &format!("lib/{name}.rb")),
        paths::join(dir, &format!("lib/{file}.rb")),
    ];
    manifest.start(source_paths, "library", format!("require '{name}'"), false);
    for folder in ["exe", "bin"] {
        manifest.start(
            vec![paths::join(dir, &format!("{folder}/{name}"))],
            "manifest",
            format!("command '{name}'"),
            false,
        );
    }
    manifest.name = Some(name);
    manifest
}

/// Parses a `composer.json` of PHP.
pub fn composer(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "composer");
    let Ok(json) = serde_json::from_str::<Value>(content) else { return manifest };
    let dir = paths::folder(path);
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    (manifest.name, manifest.description) = (text("name"), text("description"));
    let listed = json["bin"].as_array().cloned().unwrap_or_else(|| vec![json["bin"].clone()]);
    for bin in listed.iter().filter_map(Value::as_str) {
        manifest.start(
            vec![paths::join(dir, bin)],
            "manifest",
            format!("command '{bin}' (bin)"),
            true,
        );
    }
    manifest.start(
        vec![paths::join(dir, "public/index.php")],
        "server",
        "front controller".into(),
        false,
    );
    manifest.start(
        vec![paths::join(dir, "artisan")],
        "script",
        "Laravel's command line".into(),
        false,
    );
    if let Some(name) = manifest.name.as_deref().and_then(|name| name.rsplit('/').next()) {
        manifest.modules.push((name.to_owned(), dir.to_owned()));
    }
    if dir.is_empty() {
        manifest.build.push("composer install".into());
        if json["scripts"]["test"].is_string() || json["scripts"]["test"].is_array() {
            manifest.test.push("composer test".into());
        } else if content.contains("phpunit") {
            manifest.test.push("vendor/bin/phpunit".into());
        }
    }
    manifest
}

/// Parses a `Package.swift` of Swift.
pub fn swift(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "swift");
    let dir = paths::folder(path);
    manifest.name =
        content.split_once("name:").and_then(|(_, rest)| quoted(rest)).map(str::to_owned);
    let targets = Regex::new(r#"executableTarget\(\s*name:\s*"([^"]+)""#);
    for hit in targets.iter().flat_map(|p| p.captures_iter(content)).take(10) {
        let name = &hit[1];
        let source_paths =
            ["main.swift".to_owned(), format!("{name}.swift"), "App.swift".to_owned()];
        let source_paths =
            source_paths.iter().map(|f| paths::join(dir, &format!("Sources/{name}/{f}"))).collect();
        manifest.start(
            source_paths,
            "manifest",
            format!("program '{name}' (executableTarget)"),
            false,
        );
    }
    let targets = Regex::new(r#"\.target\(\s*name:\s*"([^"]+)"(?:[^"]*path:\s*"([^"]+)")?"#);
    let is_product = |name: &str| {
        content.match_indices(".library(").any(|(at, _)| {
            let product = content[at..].split(')').next().unwrap_or("");
            product.contains(&format!("\"{name}\""))
        })
    };
    for hit in targets.iter().flat_map(|p| p.captures_iter(content)).take(30) {
        let name = &hit[1];
        let inner =
            hit.get(2).map_or_else(|| format!("Sources/{name}"), |path| path.as_str().into());
        if let Some(folder) = paths::join(dir, &inner).filter(|_| is_product(name)) {
            manifest.modules.push((name.to_owned(), folder));
        }
    }
    if dir.is_empty() {
        manifest.build.push("swift build".into());
        manifest.test.push("swift test".into());
    }
    manifest
}

/// Parses a `mix.exs` of Elixir.
pub fn mix(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "mix");
    let app = Regex::new(r"app:\s*:(\w+)")
        .ok()
        .and_then(|p| p.captures(content).map(|hit| hit[1].to_owned()));
    if paths::folder(path).is_empty() {
        manifest.build.push("mix deps.get && mix compile".into());
        manifest.test.push("mix test".into());
    }
    if let Some(app) = &app {
        let dir = paths::folder(path);
        if content.contains("mod: {") {
            let source = paths::join(dir, &format!("lib/{app}/application.ex"));
            manifest.start(vec![source], "manifest", format!("application {app}"), false);
        }
        let source = paths::join(dir, &format!("lib/{app}.ex"));
        manifest.start(vec![source], "library", format!("root module of {app}"), false);
    }
    manifest.name = app;
    manifest
}

/// Reads a .NET project.
pub fn csproj(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "dotnet");
    let dir = paths::folder(path);
    manifest.name = Some(paths::file_name(path).trim_end_matches(".csproj").to_owned());
    if content.contains("<OutputType>Exe") || content.contains("Sdk.Web") {
        let reason = format!("program of {}", paths::file_name(path));
        manifest.start(vec![paths::join(dir, "Program.cs")], "manifest", reason, false);
    } else {
        let name = paths::file_name(path).trim_end_matches(".csproj");
        manifest.modules.push((name.to_owned(), dir.to_owned()));
    }
    manifest.build.push("dotnet build".into());
    manifest.test.push("dotnet test".into());
    manifest
}

/// Reads a `Dockerfile`: the command that the container starts.
pub fn docker(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "docker");
    let mut starts = content
        .lines()
        .map(str::trim)
        .filter(|l| l.starts_with("ENTRYPOINT") || l.starts_with("CMD"));
    if let Some(line) = starts.next_back() {
        manifest.start(
            vec![Some(path.to_owned())],
            "container",
            format!("container: {line}"),
            false,
        );
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_gems_packages_and_containers() {
        let m = gemspec(
            "sinatra.gemspec",
            "Gem::Specification.new 'sinatra', version do |s|\n s.summary = 'Web DSL'\nend",
        );
        assert_eq!(
            (m.name.as_deref(), m.description.as_deref()),
            (Some("sinatra"), Some("Web DSL"))
        );
        assert_eq!(m.starts[0].candidates[0], "lib/sinatra.rb");
        let m = swift(
            "Package.swift",
            "let package = Package(name: \"x\", targets: [.executableTarget(name: \"tool\")])",
        );
        assert_eq!(m.starts[0].candidates[0], "Sources/tool/main.swift");
        assert!(docker("Dockerfile", "FROM x\nCMD [\"run\"]").starts[0].reason.contains("CMD"));
    }
}
