//! Ruby, PHP, Swift, Elixir, .NET and containers.

use regex::Regex;
use serde_json::Value;

use super::{Manifest, paths, quoted};

/// Reads a `Gemfile`.
pub fn gemfile(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "bundler");
    let dir = paths::folder(path);
    if dir.is_empty() {
        found.build.push("bundle install".into());
        found.test.push(
            if content.contains("rspec") { "bundle exec rspec" } else { "bundle exec rake test" }.into(),
        );
        if content.contains("'rails'") || content.contains("\"rails\"") {
            found.run.push("bin/rails server".into());
        }
    }
    found.start(vec![paths::join(dir, "config.ru")], "server", "Rack application (config.ru)".into(), false);
    found
}

/// Reads a gem's specification.
pub fn gemspec(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "gem");
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
        .or_else(|| quoted(content.split_once("Specification.new")?.1.lines().next()?).map(str::to_owned))
        .unwrap_or(stem);
    found.description = field("summary");
    let file = name.replace('-', "/");
    let places =
        vec![paths::join(dir, &format!("lib/{name}.rb")), paths::join(dir, &format!("lib/{file}.rb"))];
    found.start(places, "library", format!("require '{name}'"), false);
    for folder in ["exe", "bin"] {
        found.start(
            vec![paths::join(dir, &format!("{folder}/{name}"))],
            "manifest",
            format!("command '{name}'"),
            false,
        );
    }
    found.name = Some(name);
    found
}

/// Reads `composer.json`.
pub fn composer(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "composer");
    let Ok(json) = serde_json::from_str::<Value>(content) else { return found };
    let dir = paths::folder(path);
    let text = |key: &str| json[key].as_str().map(str::to_owned);
    (found.name, found.description) = (text("name"), text("description"));
    let listed = json["bin"].as_array().cloned().unwrap_or_else(|| vec![json["bin"].clone()]);
    for bin in listed.iter().filter_map(Value::as_str) {
        found.start(vec![paths::join(dir, bin)], "manifest", format!("command '{bin}' (bin)"), true);
    }
    found.start(vec![paths::join(dir, "public/index.php")], "server", "front controller".into(), false);
    found.start(vec![paths::join(dir, "artisan")], "script", "Laravel's command line".into(), false);
    if dir.is_empty() {
        found.build.push("composer install".into());
        if json["scripts"]["test"].is_string() || json["scripts"]["test"].is_array() {
            found.test.push("composer test".into());
        } else if content.contains("phpunit") {
            found.test.push("vendor/bin/phpunit".into());
        }
    }
    found
}

/// Reads `Package.swift`.
pub fn swift(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "swift");
    let dir = paths::folder(path);
    found.name = content.split_once("name:").and_then(|(_, rest)| quoted(rest)).map(str::to_owned);
    let targets = Regex::new(r#"executableTarget\(\s*name:\s*"([^"]+)""#);
    for hit in targets.iter().flat_map(|p| p.captures_iter(content)).take(10) {
        let name = &hit[1];
        let places = ["main.swift".to_owned(), format!("{name}.swift"), "App.swift".to_owned()];
        let places = places.iter().map(|f| paths::join(dir, &format!("Sources/{name}/{f}"))).collect();
        found.start(places, "manifest", format!("program '{name}' (executableTarget)"), false);
    }
    if dir.is_empty() {
        found.build.push("swift build".into());
        found.test.push("swift test".into());
    }
    found
}

/// Reads `mix.exs`.
pub fn mix(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "mix");
    let app =
        Regex::new(r"app:\s*:(\w+)").ok().and_then(|p| p.captures(content).map(|hit| hit[1].to_owned()));
    if paths::folder(path).is_empty() {
        found.build.push("mix deps.get && mix compile".into());
        found.test.push("mix test".into());
    }
    if let Some(app) = &app {
        let dir = paths::folder(path);
        let places = vec![
            paths::join(dir, &format!("lib/{app}/application.ex")),
            paths::join(dir, &format!("lib/{app}.ex")),
        ];
        found.start(places, "manifest", format!("application {app}"), false);
    }
    found.name = app;
    found
}

/// Reads a .NET project.
pub fn csproj(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "dotnet");
    let dir = paths::folder(path);
    found.name = Some(paths::file_name(path).trim_end_matches(".csproj").to_owned());
    if content.contains("<OutputType>Exe") || content.contains("Sdk.Web") {
        let reason = format!("program of {}", paths::file_name(path));
        found.start(vec![paths::join(dir, "Program.cs")], "manifest", reason, false);
    }
    found.build.push("dotnet build".into());
    found.test.push("dotnet test".into());
    found
}

/// Reads a `Dockerfile`: the command that the container starts.
pub fn docker(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "docker");
    let mut starts =
        content.lines().map(str::trim).filter(|l| l.starts_with("ENTRYPOINT") || l.starts_with("CMD"));
    if let Some(line) = starts.next_back() {
        found.start(vec![Some(path.to_owned())], "container", format!("container: {line}"), false);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gems_packages_and_containers() {
        let m = gemspec(
            "sinatra.gemspec",
            "Gem::Specification.new 'sinatra', version do |s|\n s.summary = 'Web DSL'\nend",
        );
        assert_eq!((m.name.as_deref(), m.description.as_deref()), (Some("sinatra"), Some("Web DSL")));
        assert_eq!(m.starts[0].candidates[0], "lib/sinatra.rb");
        let m = swift(
            "Package.swift",
            "let package = Package(name: \"x\", targets: [.executableTarget(name: \"tool\")])",
        );
        assert_eq!(m.starts[0].candidates[0], "Sources/tool/main.swift");
        assert!(docker("Dockerfile", "FROM x\nCMD [\"run\"]").starts[0].reason.contains("CMD"));
    }
}
