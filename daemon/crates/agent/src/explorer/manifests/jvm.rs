//! `pom.xml` and Gradle builds.

use quick_xml::{Reader, events::Event};
use regex::Regex;

use super::{Manifest, paths};

/// Reads a Maven project.
pub fn maven(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "maven");
    let dir = paths::folder(path);
    let mut reader = Reader::from_str(content);
    let mut stack: Vec<String> = Vec::new();
    let mut modules = false;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => stack.push(tag.local_name().as_ref().to_owned()),
            Ok(Event::End(_)) => {
                stack.pop();
            }
            Ok(Event::Text(text)) => {
                let value = text.trim().to_owned();
                let element_path: Vec<&str> = stack.iter().map(String::as_str).collect();
                match element_path.as_slice() {
                    ["project", "artifactId"] => manifest.name = Some(value),
                    ["project", "description"] if !value.is_empty() => {
                        manifest.description =
                            Some(value.split_whitespace().collect::<Vec<_>>().join(" "));
                    }
                    ["project", "modules", "module"] => modules = true,
                    [.., "mainClass" | "start-class"] if !value.contains('$') => {
                        main_class(&mut manifest, dir, &value)
                    }
                    _ => {}
                }
            }
            // A damaged file yields the part before the damage.
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
    }
    if dir.is_empty() {
        manifest.build.push("mvn package".into());
        manifest.test.push("mvn test".into());
    }
    if !modules {
        manifest.modules.extend(manifest.name.clone().map(|name| (name, dir.to_owned())));
        manifest.start(
            vec![paths::join(dir, "src/main/java/module-info.java")],
            "library",
            format!("Java module of {}", manifest.name.clone().unwrap_or_default()),
            false,
        );
    }
    manifest
}

fn main_class(manifest: &mut Manifest, dir: &str, class: &str) {
    let file = class.replace('.', "/");
    let candidates = ["src/main/java", "src/main/kotlin", "src"].iter().flat_map(|base| {
        ["java", "kt"].map(|ending| paths::join(dir, &format!("{base}/{file}.{ending}")))
    });
    manifest.start(candidates.collect(), "manifest", format!("main class {class}"), true);
}

/// Reads a Gradle build, as far as it is plain text.
pub fn gradle(path: &str, content: &str) -> Manifest {
    let mut manifest = Manifest::new(path, "gradle");
    let dir = paths::folder(path);
    if let Ok(pattern) = Regex::new(r#"mainClass(?:Name)?(?:\.set\(|\s*=)\s*['"]([\w.$]+)['"]"#) {
        for hit in pattern.captures_iter(content).take(5) {
            main_class(&mut manifest, dir, &hit[1]);
        }
    }
    if let Some(line) = content.lines().find(|l| l.starts_with("description")) {
        manifest.description = super::quoted(line).map(str::to_owned);
    }
    let folder = paths::file_name(dir);
    if !folder.is_empty() {
        manifest.name = Some(folder.to_owned());
        manifest.modules.push((folder.to_owned(), dir.to_owned()));
    }
    if dir.is_empty() {
        manifest.build.push("./gradlew build".into());
        manifest.test.push("./gradlew test".into());
        if content.contains("application") || content.contains("org.springframework.boot") {
            manifest.run.push(
                if content.contains("org.springframework.boot") {
                    "./gradlew bootRun"
                } else {
                    "./gradlew run"
                }
                .into(),
            );
        }
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_main_classes() {
        let m = maven(
            "pom.xml",
            "<project><artifactId>a</artifactId><description>x\n y</description><build><plugins><plugin><configuration><mainClass>org.x.Main</mainClass></configuration></plugin></plugins></build></project>",
        );
        assert_eq!((m.name.as_deref(), m.description.as_deref()), (Some("a"), Some("x y")));
        assert!(m.starts[0].candidates.contains(&"src/main/java/org/x/Main.java".into()));
        let m = gradle("app/build.gradle.kts", "application { mainClass.set(\"a.B\") }");
        assert!(m.starts[0].candidates.contains(&"app/src/main/java/a/B.java".into()));
    }
}
