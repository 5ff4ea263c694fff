//! Values that a call requests from the user: a form, answered like an approval, never by a model.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU32, atomic::Ordering},
    time::Duration,
};

use cairn_protocol::{
    approval::{ApprovalDecision, Form, FormField, FormFieldKind, Preview},
    error::{Failure, Reason},
};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{Approvals, Call, Intent, WaitClock};

/// Most forms of one call.
const MAX_FORMS: u32 = 8;
/// Most fields of one form.
pub const MAX_FIELDS: usize = 32;
/// Longest wait for the answer to one form.
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Most bytes of the values of one answer.
const MAX_VALUES: usize = 64 * 1024;

/// Values by the names of their fields.
pub type FormValues = BTreeMap<String, Value>;

/// Answer of the user to a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// The values, checked against the form.
    Accepted(FormValues),
    /// The user refused, or no client can answer; the call may continue.
    Declined,
    /// The time to answer has passed, or the call has too many forms.
    Cancelled,
}

/// The user's input for one call: one form at a time, and a limited number of them.
pub struct UserInput {
    approvals: Arc<Approvals>,
    /// The call on whose behalf forms are shown.
    call: Call,
    /// Time that the call waits for the user.
    clock: Arc<WaitClock>,
    turn: Mutex<()>,
    count: AtomicU32,
}

impl UserInput {
    pub(crate) fn new(approvals: Arc<Approvals>, call: Call, clock: Arc<WaitClock>) -> Self {
        Self { approvals, call, clock, turn: Mutex::default(), count: AtomicU32::new(0) }
    }

    /// Returns once `limit` has passed, without the time that the call waits for the user.
    pub async fn after(&self, limit: Duration) {
        self.clock.after(limit).await;
    }

    /// Shows a form to the user and waits for the answer.
    ///
    /// # Errors
    /// `invalid_params` for a form that cannot be answered; `cancelled` when the run is cancelled
    /// or the daemon stops; errors of the log.
    pub async fn request(&self, form: Form) -> Result<FormAnswer, Failure> {
        if self.count.fetch_add(1, Ordering::SeqCst) >= MAX_FORMS {
            tracing::warn!(tool = %self.call.name, "a call may request {MAX_FORMS} forms");
            return Ok(FormAnswer::Cancelled);
        }
        require_answerable(&form)?;
        let _turn = self.turn.lock().await;
        let intent = Intent {
            preview: Preview {
                summary: format!(
                    "{} of the MCP server '{}' requests values: {}",
                    self.call.name, form.server, form.message
                ),
                network: false,
                ..Preview::default()
            },
            form: Some(form.clone()),
            ..Intent::default()
        };
        let asking = self.approvals.request_values(&self.call, &intent, "a question of the server");
        let asking = tokio::time::timeout(MAX_WAIT, asking);
        let asking = self.call.clock.while_waiting(self.clock.while_waiting(asking));
        match asking.await {
            Ok(Ok((resolution, values))) => Ok(match resolution.decision {
                ApprovalDecision::Deny if resolution.by == "deadline" => FormAnswer::Cancelled,
                ApprovalDecision::Deny => FormAnswer::Declined,
                _ if check(&form, &values).is_ok() => FormAnswer::Accepted(values),
                // The answer was recorded when this wait had ended, without its values.
                _ => FormAnswer::Cancelled,
            }),
            Ok(Err(failure)) if failure.reason == Reason::NoApprover => Ok(FormAnswer::Declined),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Ok(FormAnswer::Cancelled),
        }
    }
}

/// Refuses a form that no answer can satisfy, or whose fields have the same name.
fn require_answerable(form: &Form) -> Result<(), Failure> {
    let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    if form.fields.is_empty() || form.fields.len() > MAX_FIELDS {
        return bad(format!("a form must have 1 to {MAX_FIELDS} fields"));
    }
    for (at, field) in form.fields.iter().enumerate() {
        if form.fields[..at].iter().any(|other| other.name == field.name) {
            return bad(format!("two fields of the form have the name '{}'", field.name));
        }
        let chooses = matches!(field.kind, FormFieldKind::Choice | FormFieldKind::Choices);
        if chooses && field.options.is_empty() {
            return bad(format!("field '{}' has nothing to choose from", field.name));
        }
    }
    Ok(())
}

/// Refuses values that do not fit the form.
///
/// # Errors
/// `invalid_params` that names the field.
pub(crate) fn check(form: &Form, values: &FormValues) -> Result<(), Failure> {
    let bad = |text: String| Err(Failure::new(Reason::InvalidParams, text));
    if json!(values).to_string().len() > MAX_VALUES {
        return bad(format!("the values have more than {MAX_VALUES} bytes"));
    }
    if let Some(unknown) = values.keys().find(|name| form.fields.iter().all(|f| f.name != **name)) {
        return bad(format!("values.{}: the form has no such field", unknown.escape_default()));
    }
    for field in &form.fields {
        match values.get(&field.name) {
            None if field.required => return bad(format!("values.{}: it is required", field.name)),
            None => {}
            Some(value) => {
                if let Err(why) = check_value(field, value) {
                    return bad(format!("values.{}: {why}", field.name));
                }
            }
        }
    }
    Ok(())
}

fn check_value(field: &FormField, value: &Value) -> Result<(), String> {
    let is_option = |value: &Value| {
        value.as_str().is_some_and(|text| field.options.iter().any(|o| o.value == text))
    };
    let size = match (field.kind, value) {
        (FormFieldKind::Text, Value::String(text)) => text.chars().count() as f64,
        (FormFieldKind::Number, Value::Number(number)) => number.as_f64().unwrap_or(f64::NAN),
        (FormFieldKind::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => {
            number.as_f64().unwrap_or(f64::NAN)
        }
        (FormFieldKind::Boolean, Value::Bool(_)) => return Ok(()),
        (FormFieldKind::Choice, value) if is_option(value) => return Ok(()),
        (FormFieldKind::Choices, Value::Array(all)) if all.iter().all(is_option) => {
            all.len() as f64
        }
        (kind, _) => return Err(format!("it must be {}", describe(kind))),
    };
    let fits = field.min.is_none_or(|min| size >= min) && field.max.is_none_or(|max| size <= max);
    if fits {
        return Ok(());
    }
    let bound = |value: Option<f64>| value.map_or("any".to_owned(), |value| value.to_string());
    let unit = match field.kind {
        FormFieldKind::Text => "its length",
        FormFieldKind::Choices => "the number of values",
        _ => "it",
    };
    Err(format!("{unit} must be from {} to {}", bound(field.min), bound(field.max)))
}

fn describe(kind: FormFieldKind) -> &'static str {
    match kind {
        FormFieldKind::Text => "a text",
        FormFieldKind::Number => "a number",
        FormFieldKind::Integer => "a number without a fraction",
        FormFieldKind::Boolean => "true or false",
        FormFieldKind::Choice => "one of the options",
        FormFieldKind::Choices => "a list of options",
    }
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
            required: false,
            default: None,
            min: None,
            max: None,
        }
    }

    fn form(fields: Vec<FormField>) -> Form {
        Form { server: "s".into(), message: "m".into(), fields }
    }

    #[test]
    fn values_must_fit_their_fields() {
        let options = ["a", "b"].map(|v| FormOption { value: v.into(), title: None }).to_vec();
        let form = form(vec![
            FormField {
                required: true,
                min: Some(2.0),
                max: Some(3.0),
                ..field("t", FormFieldKind::Text)
            },
            FormField { max: Some(10.0), ..field("n", FormFieldKind::Number) },
            field("i", FormFieldKind::Integer),
            field("b", FormFieldKind::Boolean),
            FormField { options: options.clone(), ..field("c", FormFieldKind::Choice) },
            FormField { options, max: Some(1.0), ..field("l", FormFieldKind::Choices) },
        ]);
        for (values, expected) in [
            (json!({"t": "äö"}), None),
            (json!({"t": "abc", "n": 1.5, "i": 3, "b": false, "c": "b", "l": ["a"]}), None),
            (json!({}), Some("values.t: it is required")),
            (json!({"t": "x"}), Some("its length must be from 2 to 3")),
            (json!({"t": 1}), Some("values.t: it must be a text")),
            (json!({"t": "xy", "n": 11}), Some("values.n: it must be from any to 10")),
            (json!({"t": "xy", "n": "1"}), Some("values.n: it must be a number")),
            (json!({"t": "xy", "i": 1.5}), Some("values.i: it must be a number without")),
            (json!({"t": "xy", "b": "yes"}), Some("values.b: it must be true or false")),
            (json!({"t": "xy", "c": "z"}), Some("values.c: it must be one of")),
            (json!({"t": "xy", "l": ["a", "b"]}), Some("values.l: the number of values")),
            (json!({"t": "xy", "z": 1}), Some("values.z: the form has no such field")),
        ] {
            let parsed: FormValues = serde_json::from_value(values.clone()).unwrap();
            match (check(&form, &parsed), expected) {
                (Ok(()), None) => {}
                (Err(failure), Some(text)) if failure.message.contains(text) => {}
                (got, _) => panic!("{values}: {got:?}"),
            }
        }
    }

    #[test]
    fn forms_without_an_answer_are_refused() {
        let text = || field("a", FormFieldKind::Text);
        assert!(require_answerable(&form(vec![text()])).is_ok());
        for fields in [
            vec![],
            vec![text(), text()],
            vec![field("a", FormFieldKind::Choice)],
            (0..=MAX_FIELDS).map(|n| field(&n.to_string(), FormFieldKind::Text)).collect(),
        ] {
            assert!(require_answerable(&form(fields)).is_err());
        }
    }
}
