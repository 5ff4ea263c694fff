//! The wording of figures about a model's speed and its remaining context.

use cairn_protocol::{event::ModelAnswer, model::TokenUsage};

/// Returns a percentage of at most 100.
fn percent(part: u64, total: u64) -> u64 {
    (part.saturating_mul(100)).checked_div(total).unwrap_or(0).min(100)
}

/// Describes the progress of reading the prompt, and the context's fill afterwards.
pub fn reading(processed: u64, total: u64, context: Option<u64>) -> String {
    let done = percent(processed, total);
    match context.filter(|c| *c > 0) {
        Some(context) => format!("thinking {done}% · ctx {}%", percent(processed, context)),
        None => format!("thinking {done}%"),
    }
}

/// Describes the progress of writing.
pub fn writing(tokens_per_second: f64) -> String {
    format!("writing {tokens_per_second:.1}tk/s")
}

/// Describes the context's fill and the last speed, after an answer; `None` if nothing was written.
pub fn summary(answer: &ModelAnswer) -> Option<String> {
    if answer.tokens_per_second < 0.1 {
        return None;
    }
    let used = used(answer);
    let tokens = if used > 0 { format!("{used} tokens  ") } else { String::new() };
    let fill =
        answer.context_tokens.filter(|c| *c > 0).map(|c| format!("{}% / ", percent(used, c)));
    Some(format!(
        "● {}{tokens}last: {:04.1}tk/s",
        fill.unwrap_or_default(),
        answer.tokens_per_second
    ))
}

/// Time in milliseconds from which a rate says something.
const MEASURABLE_MILLIS: u64 = 10;

/// Describes the time for reading the prompt.
pub fn prompt_eval(answer: &ModelAnswer) -> Option<String> {
    let read = read(answer)?;
    let ctx = answer
        .context_tokens
        .filter(|c| *c > 0)
        .map(|c| format!(" · ctx {}%", percent(used(answer), c)));
    let ctx = ctx.unwrap_or_default();
    if answer.first_millis < MEASURABLE_MILLIS {
        return Some(format!("● prompt eval: {read} tok{ctx}"));
    }
    let rate = rate(read, answer.first_millis);
    Some(format!("● prompt eval: {read} tok · {} ms · {rate:.1} t/s{ctx}", answer.first_millis))
}

/// Describes the same for a log.
pub fn prompt_eval_logged(answer: &ModelAnswer) -> Option<String> {
    let read = read(answer)?;
    let rate = rate(read, answer.first_millis);
    let used = used(answer);
    let ctx = answer.context_tokens.filter(|c| *c > 0);
    let ctx = ctx.map(|c| format!(" · ctx {}% ({used}/{c})", percent(used, c))).unwrap_or_default();
    let cached = answer.usage.cached_tokens;
    Some(format!(
        "[prompt_eval] {read} tok ({cached} cached) · {} ms · {rate:.1} t/s{ctx}",
        answer.first_millis
    ))
}

/// Describes the usage of a session; `unpriced` of its turns have no known cost.
pub fn session_cost(total: &TokenUsage, turns: u64, unpriced: u64) -> String {
    let tokens = format!(
        "{turns} turns · {} input tokens ({} cached) · {} output tokens",
        total.input_tokens, total.cached_tokens, total.output_tokens
    );
    match total.cost_micro_usd {
        None => format!("{tokens} · the model's price is not known"),
        Some(cost) if unpriced > 0 => {
            format!("{tokens} · {} without {unpriced} turns of unknown price", dollars(cost))
        }
        Some(cost) => format!("{tokens} · {}", dollars(cost)),
    }
}

/// Formats millionths of a dollar: with cents, and smaller amounts with four decimals.
pub fn dollars(micro: u64) -> String {
    let amount = micro as f64 / 1e6;
    if micro >= 100_000 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// Returns the tokens in the model's context after an answer.
fn used(answer: &ModelAnswer) -> u64 {
    answer.usage.input_tokens + answer.usage.output_tokens
}

/// Returns the tokens that had to be read.
fn read(answer: &ModelAnswer) -> Option<u64> {
    Some(answer.usage.input_tokens.saturating_sub(answer.usage.cached_tokens)).filter(|n| *n > 0)
}

fn rate(tokens: u64, millis: u64) -> f64 {
    tokens as f64 * 1000.0 / millis.max(1) as f64
}

#[cfg(test)]
mod tests {
    use cairn_protocol::{id::RunId, turn::ModelChoice};

    use super::*;

    fn answer(
        input: u64,
        output: u64,
        cached: u64,
        context: Option<u64>,
        speed: f64,
    ) -> ModelAnswer {
        ModelAnswer {
            run_id: RunId::new(),
            model: ModelChoice::default(),
            calls: vec![],
            finish: None,
            usage: TokenUsage {
                input_tokens: input,
                output_tokens: output,
                cached_tokens: cached,
                cost_micro_usd: None,
            },
            tokens_per_second: speed,
            context_tokens: context,
            first_millis: 500,
            millis: 900,
            request_digest: String::new(),
            heard_seq: 0,
            raw: None,
            reasoning: None,
        }
    }

    #[test]
    fn cost_of_unknown_prices_is_not_guessed() {
        let usage = |cost_micro_usd| TokenUsage {
            input_tokens: 900,
            output_tokens: 40,
            cached_tokens: 100,
            cost_micro_usd,
        };
        let tokens = "2 turns · 900 input tokens (100 cached) · 40 output tokens";
        for (cost, unpriced, expected) in [
            (None, 2, "the model's price is not known"),
            (Some(1_234_567), 0, "$1.23"),
            (Some(1_234), 1, "$0.0012 without 1 turns of unknown price"),
        ] {
            assert_eq!(session_cost(&usage(cost), 2, unpriced), format!("{tokens} · {expected}"));
        }
    }

    #[test]
    fn figures_are_worded_exactly() {
        assert_eq!(reading(30, 120, Some(1000)), "thinking 25% · ctx 3%");
        assert_eq!(reading(30, 120, None), "thinking 25%");
        assert_eq!(reading(0, 0, Some(0)), "thinking 0%");
        assert_eq!(writing(12.34), "writing 12.3tk/s");
        let a = answer(1000, 234, 200, Some(8192), 7.25);
        assert_eq!(summary(&a).unwrap(), "● 15% / 1234 tokens  last: 07.2tk/s");
        assert_eq!(
            prompt_eval(&a).unwrap(),
            "● prompt eval: 800 tok · 500 ms · 1600.0 t/s · ctx 15%"
        );
        assert_eq!(
            prompt_eval_logged(&a).unwrap(),
            "[prompt_eval] 800 tok (200 cached) · 500 ms · 1600.0 t/s · ctx 15% (1234/8192)"
        );
        let unknown = answer(1000, 234, 0, None, 95.0);
        assert_eq!(summary(&unknown).unwrap(), "● 1234 tokens  last: 95.0tk/s");
        assert_eq!(summary(&answer(0, 0, 0, None, 95.0)).unwrap(), "● last: 95.0tk/s");
        assert_eq!(prompt_eval(&unknown).unwrap(), "● prompt eval: 1000 tok · 500 ms · 2000.0 t/s");
        let at_once = ModelAnswer { first_millis: 0, ..unknown };
        assert_eq!(prompt_eval(&at_once).unwrap(), "● prompt eval: 1000 tok");
        assert_eq!(summary(&answer(10, 1, 0, None, 0.05)), None);
        assert_eq!(prompt_eval(&answer(10, 1, 10, None, 1.0)), None);
    }
}
