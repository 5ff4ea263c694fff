//! `pom.xml` and Gradle builds.

use quick_xml::{Reader, events::Event};
use regex::Regex;

use super::{Manifest, paths};

/// Reads a Maven project.
pub fn maven(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "maven");
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
                let place: Vec<&str> = stack.iter().map(String::as_str).collect();
                match place.as_slice() {
                    ["project", "artifactId"] => found.name = Some(value),
                    ["project", "description"] if !value.is_empty() => {
                        found.description = Some(value.split_whitespace().collect::<Vec<_>>().join(" "));
                    }
                    ["project", "modules", "module"] => modules = true,
                    [.., "mainClass" | "start-class"] if !value.contains('$') => {
                        main_class(&mut found, dir, &value)
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
        found.build.push("mvn package".into());
        found.test.push("mvn test".into());
    }
    if !modules {
        found.start(
            vec![paths::join(dir, "src/main/java/module-info.java")],
            "library",
            format!("Java module of {}", found.name.clone().unwrap_or_default()),
            false,
        );
    }
    found
}

fn main_class(found: &mut Manifest, dir: &str, class: &str) {
    let file = class.replace('.', "/");
    let candidates = ["src/main/java", "src/main/kotlin", "src"]
        .iter()
        .flat_map(|base| ["java", "kt"].map(|ending| paths::join(dir, &format!("{base}/{file}.{ending}"))));
    found.start(candidates.collect(), "manifest", format!("main class {class}"), true);
}

/// Reads a Gradle build, as far as it is plain text.
pub fn gradle(path: &str, content: &str) -> Manifest {
    let mut found = Manifest::new(path, "gradle");
    let dir = paths::folder(path);
    if let Ok(pattern) = Regex::new(r#"mainClass(?:Name)?(?:\.set\(|\s*=)\s*['"]([\w.$]+)['"]"#) {
        for hit in pattern.captures_iter(content).take(5) {
            main_class(&mut found, dir, &hit[1]);
        }
    }
    if let Some(line) = content.lines().map(str::trim).find(|l| l.starts_with("description")) {
        found.description = super::quoted(line).map(str::to_owned);
    }
    let folder = paths::file_name(dir);
    if !folder.is_empty() {
        found.name = Some(folder.to_owned());
    }
    if dir.is_empty() {
        found.build.push("./gradlew build".into());
        found.test.push("./gradlew test".into());
        if content.contains("application") || content.contains("org.springframework.boot") {
            found.run.push(
                if content.contains("org.springframework.boot") {
                    "./gradlew bootRun"
                } else {
                    "./gradlew run"
                }
                .into(),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn main_classes() {
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
