//! `plan`: the model's to-do list. The engine turns it into an event.

use std::sync::Arc;

use cairn_harness::Tool;
use cairn_protocol::{
    error::{Failure, Reason},
    event::PlanItem,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Deps, reading::reading};

/// Most items of a plan.
const MAX_ITEMS: usize = 50;
/// Most characters of an item.
const MAX_TEXT: usize = 200;

/// Arguments of the tool `plan`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanParams {
    /// The complete list, in order; it replaces the previous one. At most 50 items of at most 200
    /// characters.
    #[schemars(length(max = 50))]
    items: Vec<PlanItem>,
}

pub fn tools(deps: &Deps) -> Vec<Arc<dyn Tool>> {
    let plan = reading(
        deps,
        "plan",
        "Records the list of tasks, for the user to see. Give the complete list each time, with the \
        state of each item: `pending`, `in_progress` or `done`. Use it for work of several steps.",
        "plan",
        |_, _, params: PlanParams, _| Ok((checked(params.items)?, false)),
    );
    vec![Arc::new(plan.offered())]
}

fn checked(mut items: Vec<PlanItem>) -> Result<Value, Failure> {
    let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    if items.len() > MAX_ITEMS {
        return bad(format!("a plan has at most {MAX_ITEMS} items, not {}", items.len()));
    }
    for (at, item) in items.iter_mut().enumerate() {
        // One line each; this also keeps control characters off terminals.
        let text = item
            .text
            .split(|c: char| c.is_whitespace() || c.is_control())
            .filter(|w| !w.is_empty());
        item.text = text.collect::<Vec<_>>().join(" ");
        match item.text.chars().count() {
            0 => return bad(format!("item {} has no text", at + 1)),
            n if n > MAX_TEXT => {
                return bad(format!("item {} has {n} characters; the limit is {MAX_TEXT}", at + 1));
            }
            _ => {}
        }
    }
    Ok(json!({"items": items}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_plans_are_rejected() {
        let items = |texts: &[String]| {
            let items =
                texts.iter().map(|t| PlanItem { text: t.clone(), status: Default::default() });
            checked(items.collect()).map_err(|e| e.message)
        };
        let value = items(&["  read\n\u{1b}the  code ".into()]).unwrap();
        assert_eq!(value, json!({"items": [{"text": "read the code", "status": "pending"}]}));
        assert_eq!(items(&[]).unwrap(), json!({"items": []}));
        assert_eq!(items(&["a".into(), "\t".into()]).unwrap_err(), "item 2 has no text");
        assert_eq!(
            items(&["x".repeat(201)]).unwrap_err(),
            "item 1 has 201 characters; the limit is 200"
        );
        assert!(items(&vec!["ä".repeat(200); 50]).is_ok());
        assert!(items(&vec!["a".into(); 51]).unwrap_err().contains("at most 50"));
    }
}
