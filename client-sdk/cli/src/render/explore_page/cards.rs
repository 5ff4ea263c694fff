//! Cards of components and secondary folders.

use cairn_explore_report::facts;
use cairn_protocol::explore::{Component, ExploreDetails};

use super::markup::{path, text};

/// A card for each component, with links between them.
pub fn components(all: &[Component]) -> String {
    let positions = facts::positions(all);
    let link = |at: usize| format!("<a href=\"#c-{at}\">{}</a>", text(facts::name(&all[at])));
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (at, component) in all.iter().enumerate() {
        for target in component.depends_on.iter().filter_map(|path| positions.get(path.as_str())) {
            if *target != at && !users[*target].contains(&at) {
                users[*target].push(at);
            }
        }
    }
    let cards: Vec<String> = all
        .iter()
        .enumerate()
        .map(|(at, component)| {
            let dependencies: Vec<String> = component
                .depends_on
                .iter()
                .filter(|path| **path != component.path)
                .map(|target| {
                    positions.get(target.as_str()).map_or_else(|| path(target), |at| link(*at))
                })
                .collect();
            let users: Vec<String> = users[at].iter().map(|user| link(*user)).collect();
            let lists =
                format!("{}{}", labelled("Depends on", &dependencies), labelled("Used by", &users));
            format!(
                "<article class=\"card\" id=\"c-{at}\" tabindex=\"-1\">\n{}{lists}</article>\n",
                card(component)
            )
        })
        .collect();
    grid(&cards)
}

/// Cards for folders that are no part of the system.
pub fn secondary(details: &ExploreDetails) -> String {
    let card = |folder| format!("<article class=\"card\">\n{}</article>\n", card(folder));
    grid(&details.secondary.iter().map(card).collect::<Vec<_>>())
}

fn grid(cards: &[String]) -> String {
    if cards.is_empty() {
        return String::new();
    }
    format!("<div class=\"cards\">\n{}</div>\n", cards.concat())
}

fn labelled(label: &str, items: &[String]) -> String {
    if items.is_empty() {
        return String::new();
    }
    format!("<p class=\"faint\">{label} {}</p>\n", items.join(", "))
}

/// Title, role, path, size, evidence and files of a component.
fn card(component: &Component) -> String {
    let name = facts::name(component);
    let kind = match text(&component.kind) {
        kind if kind.is_empty() => kind,
        kind => format!(" <span class=\"tag\">{kind}</span>"),
    };
    let mut out = format!("<h3>{}{kind}</h3>\n", text(name));
    let role = text(&component.role);
    if !role.is_empty() {
        out.push_str(&format!("<p>{role}</p>\n"));
    }
    // A path that is the name would be repeated.
    let mut about = Vec::new();
    if component.path != name && !component.path.is_empty() {
        about.push(path(&component.path));
    }
    about.extend(Some(facts::size(component)).filter(|size| !size.is_empty()));
    about.extend(component.evidence.as_ref().map(|at| format!("role stated in {}", path(at))));
    if !about.is_empty() {
        out.push_str(&format!("<p class=\"faint\">{}</p>\n", about.join(" · ")));
    }
    if !component.key_files.is_empty() {
        let files: String =
            component.key_files.iter().map(|file| format!("<li>{}</li>", path(file))).collect();
        out.push_str(&format!("<ul>{files}</ul>\n"));
    }
    out
}
