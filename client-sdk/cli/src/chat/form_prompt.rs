//! The fields of a form of an MCP server, entered one after the other.

use std::{collections::BTreeMap, fmt::Write as _};

use cairn_protocol::approval::{Form, FormField, FormFieldKind};
use console::style;
use serde_json::{Value, json};

use super::keys::Key;
use crate::render::output::plain;

/// Most characters of one value.
const MAX_TYPED: usize = 4000;
/// Keys of the prompt with their meaning.
const KEYS: &str = "Enter next · Esc decline";

/// A form that is being filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct FormPrompt {
    form: Form,
    /// Position of the field that is entered.
    at: usize,
    typed: String,
    values: BTreeMap<String, Value>,
    error: Option<String>,
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum FormOutcome {
    /// The form stays open.
    Open,
    /// Every field has its value, or none if it is optional.
    Filled(BTreeMap<String, Value>),
    Declined,
}

impl FormPrompt {
    pub fn new(form: Form) -> Self {
        Self { form, at: 0, typed: String::new(), values: BTreeMap::new(), error: None }
    }

    /// Renders the row of the field that is entered.
    pub fn row(&self) -> String {
        let Some(field) = self.form.fields.get(self.at) else { return String::new() };
        let error = self.error.as_ref().map_or_else(String::new, |e| format!(" ({})", plain(e)));
        let count = format!("{}/{}", self.at + 1, self.form.fields.len());
        format!(
            "{} {}{} {}",
            style(format!("{} {count}{error}:", label(field))).yellow().for_stderr(),
            plain(&self.typed),
            style("▏").dim().for_stderr(),
            style(KEYS).dim().for_stderr(),
        )
    }

    pub fn key(&mut self, key: Key) -> FormOutcome {
        match key {
            // Further characters are ignored.
            Key::Char(c) if self.typed.chars().count() < MAX_TYPED => self.typed.push(c),
            Key::Paste(text) if self.typed.len() + text.len() <= MAX_TYPED => {
                self.typed.extend(text.chars().filter(|c| !c.is_control()));
            }
            Key::Backspace => drop(self.typed.pop()),
            Key::Clear => self.typed.clear(),
            Key::Escape => return FormOutcome::Declined,
            Key::Enter => return self.enter(),
            _ => {}
        }
        FormOutcome::Open
    }

    fn enter(&mut self) -> FormOutcome {
        let Some(field) = self.form.fields.get(self.at) else { return FormOutcome::Declined };
        match value(field, self.typed.trim()) {
            Err(error) => {
                self.error = Some(error);
                return FormOutcome::Open;
            }
            Ok(value) => {
                self.error = None;
                self.values.extend(value.map(|value| (field.name.clone(), value)));
            }
        }
        self.typed.clear();
        self.at += 1;
        if self.at < self.form.fields.len() {
            return FormOutcome::Open;
        }
        FormOutcome::Filled(std::mem::take(&mut self.values))
    }
}

/// Renders the question and its fields.
pub fn question(form: &Form) -> String {
    let mut out = String::new();
    let mut row = |name: &str, value: &str| {
        let name = style(format!("{name:<8}")).dim().for_stderr();
        let _infallible = writeln!(out, "  {name} {value}");
    };
    row("server", &format!("{} (its answers go to it, not to the model)", plain(&form.server)));
    row("asks", &style(plain(&form.message)).bold().for_stderr().to_string());
    for field in &form.fields {
        let mut text = format!("{}, {}", label(field), describe(field));
        if let Some(more) = &field.description {
            let _infallible = write!(text, ": {}", plain(more));
        }
        row("field", &text);
    }
    out
}

fn label(field: &FormField) -> String {
    plain(field.title.as_deref().unwrap_or(&field.name))
}

fn describe(field: &FormField) -> String {
    let kind = match field.kind {
        FormFieldKind::Text => "text".to_owned(),
        FormFieldKind::Number => "number".to_owned(),
        FormFieldKind::Integer => "number without fraction".to_owned(),
        FormFieldKind::Boolean => "y or n".to_owned(),
        FormFieldKind::Choice => format!("one of {}", options(field)),
        FormFieldKind::Choices => format!("any of {}, with commas", options(field)),
    };
    let need = if field.required { "" } else { ", may be empty" };
    let default = field.default.as_ref().map(|value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!(", empty for {}", plain(&text))
    });
    format!("{kind}{}", default.unwrap_or_else(|| need.to_owned()))
}

fn options(field: &FormField) -> String {
    let one = |(at, option): (usize, &cairn_protocol::approval::FormOption)| {
        format!("{} {}", at + 1, plain(option.title.as_deref().unwrap_or(&option.value)))
    };
    field.options.iter().enumerate().map(one).collect::<Vec<_>>().join(" / ")
}

/// Returns the value that the user typed; `None` for none.
///
/// # Errors
/// The reason why it is no value of the field.
fn value(field: &FormField, typed: &str) -> Result<Option<Value>, String> {
    if typed.is_empty() {
        return match &field.default {
            Some(default) => Ok(Some(default.clone())),
            None if field.required => Err("a value is required".to_owned()),
            None => Ok(None),
        };
    }
    let (value, size) = match field.kind {
        FormFieldKind::Text => (json!(typed), typed.chars().count() as f64),
        FormFieldKind::Integer => {
            let number: i64 = typed.parse().map_err(|_| "a number without fraction".to_owned())?;
            (json!(number), number as f64)
        }
        FormFieldKind::Number => {
            let number = typed.parse::<f64>().ok().filter(|n| n.is_finite());
            let number = number.ok_or("a number is needed")?;
            (json!(number), number)
        }
        FormFieldKind::Boolean => match typed.to_lowercase().as_str() {
            "y" | "yes" | "true" => return Ok(Some(json!(true))),
            "n" | "no" | "false" => return Ok(Some(json!(false))),
            _ => return Err("y or n".to_owned()),
        },
        FormFieldKind::Choice => return option(field, typed).map(|text| Some(json!(text))),
        FormFieldKind::Choices => {
            let all = typed.split(',').map(|part| option(field, part.trim()));
            let all: Vec<String> = all.collect::<Result<_, _>>()?;
            let count = all.len() as f64;
            (json!(all), count)
        }
    };
    if field.min.is_some_and(|min| size < min) {
        return Err(format!("at least {}", field.min.unwrap_or_default()));
    }
    if field.max.is_some_and(|max| size > max) {
        return Err(format!("at most {}", field.max.unwrap_or_default()));
    }
    Ok(Some(value))
}

/// Returns the option with that number, value or title.
fn option(field: &FormField, typed: &str) -> Result<String, String> {
    let numbered = typed.parse::<usize>().ok().and_then(|n| field.options.get(n.checked_sub(1)?));
    let named = field
        .options
        .iter()
        .find(|option| option.value == typed || option.title.as_deref() == Some(typed));
    let found = named.or(numbered).ok_or_else(|| format!("one of {}", options(field)))?;
    Ok(found.value.clone())
}

#[cfg(test)]
mod tests {
    use cairn_protocol::approval::FormOption;

    use super::*;

    fn field(name: &str, kind: FormFieldKind) -> FormField {
        FormField {
            name: name.into(),
            title: None,
            description: None,
            kind,
            options: vec![],
            required: true,
            default: None,
            min: None,
            max: None,
        }
    }

    fn type_line(prompt: &mut FormPrompt, text: &str) -> FormOutcome {
        text.chars().for_each(|c| drop(prompt.key(Key::Char(c))));
        prompt.key(Key::Enter)
    }

    #[test]
    fn fields_are_entered_in_order() {
        let options = |all: &[(&str, &str)]| -> Vec<FormOption> {
            let one =
                |(v, t): &(&str, &str)| FormOption { value: (*v).into(), title: Some((*t).into()) };
            all.iter().map(one).collect()
        };
        let rooms = options(&[("a", "First"), ("b", "Second")]);
        let form = Form {
            server: "hotel".into(),
            message: "Which\u{1b}[2J room?".into(),
            fields: vec![
                FormField { max: Some(5.0), ..field("name", FormFieldKind::Text) },
                FormField { default: Some(json!(2)), ..field("guests", FormFieldKind::Integer) },
                field("vegan", FormFieldKind::Boolean),
                FormField { options: rooms.clone(), ..field("room", FormFieldKind::Choice) },
                FormField {
                    options: rooms,
                    required: false,
                    ..field("extras", FormFieldKind::Choices)
                },
                FormField { required: false, ..field("note", FormFieldKind::Text) },
            ],
        };
        let text = console::strip_ansi_codes(&question(&form)).into_owned();
        assert!(text.contains("hotel (its answers go to it") && !text.contains('\u{1b}'), "{text}");
        assert!(text.contains("room, one of 1 First / 2 Second"), "{text}");
        let mut prompt = FormPrompt::new(form.clone());
        assert_eq!(type_line(&mut prompt, ""), FormOutcome::Open);
        assert!(prompt.row().contains("a value is required"), "{}", prompt.row());
        assert_eq!(type_line(&mut prompt, "abcdef"), FormOutcome::Open);
        assert!(prompt.row().contains("at most 5"), "{}", prompt.row());
        prompt.key(Key::Clear);
        for line in ["Ann", "", "maybe"] {
            assert_eq!(type_line(&mut prompt, line), FormOutcome::Open, "{line}");
        }
        assert!(prompt.row().contains("3/6 (y or n)"), "{}", prompt.row());
        prompt.key(Key::Clear);
        for line in ["n", "2", "First, 2"] {
            assert_eq!(type_line(&mut prompt, line), FormOutcome::Open, "{line}");
        }
        let expected = json!({
            "name": "Ann", "guests": 2, "vegan": false, "room": "b", "extras": ["a", "b"],
        });
        let FormOutcome::Filled(values) = type_line(&mut prompt, "") else { panic!("open") };
        assert_eq!(json!(values), expected);
        assert_eq!(FormPrompt::new(form).key(Key::Escape), FormOutcome::Declined);
    }
}
