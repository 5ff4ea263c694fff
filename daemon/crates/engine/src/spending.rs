//! Money that model requests cost, and the limits on it.

use cairn_protocol::{
    envelope::Body,
    error::{Failure, Reason},
    event::AgentEvt,
    id::SessionId,
    time::Timestamp,
};

use crate::Engine;

/// Milliseconds of the period that the daily limit covers.
const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

/// Limits on the cost of model requests, in US dollars; none where `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostLimits {
    /// Limit for one turn.
    pub turn: Option<f64>,
    /// Limit for all turns of a session.
    pub session: Option<f64>,
    /// Limit for all sessions in 24 hours.
    pub day: Option<f64>,
}

impl CostLimits {
    /// True if any limit is set.
    pub fn is_set(&self) -> bool {
        self.turn.is_some() || self.session.is_some() || self.day.is_some()
    }
}

/// Returns an error if `spent` millionths of a dollar have reached `limit` dollars.
pub(crate) fn require(
    spent: u64,
    limit: Option<f64>,
    subject: &str,
    key: &str,
) -> Result<(), Failure> {
    let Some(limit) = limit.filter(|limit| spent as f64 >= limit * 1e6) else { return Ok(()) };
    let text = format!("{subject} has cost {}; {key} is {limit}", dollars(spent));
    Err(Failure::new(Reason::BudgetExceeded, text))
}

/// Renders an amount, with as many digits as a small one requires.
pub(crate) fn dollars(micro_usd: u64) -> String {
    let amount = micro_usd as f64 / 1e6;
    if amount < 0.1 { format!("{amount:.4} USD") } else { format!("{amount:.2} USD") }
}

impl Engine {
    /// Returns the recorded cost of a session since `after`, in millionths of a dollar, with the
    /// time of each answer.
    async fn costs_of(
        &self,
        session: &SessionId,
        after: Timestamp,
    ) -> Result<Vec<(Timestamp, u64)>, Failure> {
        let mut costs = Vec::new();
        let visit = |record: cairn_protocol::envelope::Envelope| {
            if let Body::Evt { evt: AgentEvt::ModelAnswer(answer) } = record.body
                && record.ts >= after
                && let Some(cost) = answer.usage.cost_micro_usd
            {
                costs.push((record.ts, cost));
            }
        };
        self.inner.trace.for_each_record(session, visit).await?;
        Ok(costs)
    }

    /// Returns the recorded cost of a session; `None` if no answer has a known price.
    ///
    /// # Errors
    /// An error of the log.
    pub(crate) async fn known_cost_of(&self, session: &SessionId) -> Result<Option<u64>, Failure> {
        let costs = self.costs_of(session, Timestamp(0)).await?;
        let sum = costs.iter().map(|(_, cost)| cost).sum();
        Ok((!costs.is_empty()).then_some(sum))
    }

    /// Returns the recorded cost of a session in millionths of a dollar.
    ///
    /// # Errors
    /// An error of the log.
    pub(crate) async fn cost_of(&self, session: &SessionId) -> Result<u64, Failure> {
        let costs = self.costs_of(session, Timestamp(0)).await?;
        Ok(costs.into_iter().map(|(_, cost)| cost).sum())
    }

    /// Reads once what the last 24 hours cost before this daemon started, for the daily limit.
    ///
    /// # Errors
    /// An error of the log.
    pub(crate) async fn load_costs(&self) -> Result<(), Failure> {
        let models = &self.inner.models;
        if models.limits().cost.day.is_none() {
            return Ok(());
        }
        let load = async {
            let now = Timestamp::now();
            let after = Timestamp(now.0 - DAY_MILLIS);
            let mut cursor = None;
            loop {
                let page = self.inner.trace.sessions(cursor, None, true).await?;
                for session in page.data.into_iter().filter(|s| s.updated_at >= after) {
                    for (ts, cost) in self.costs_of(&session.session_id, after).await? {
                        models.add_earlier(u64::try_from(now.0 - ts.0).unwrap_or(0), cost);
                    }
                }
                cursor = page.next_cursor;
                if cursor.is_none() {
                    return Ok(());
                }
            }
        };
        models.loaded.get_or_try_init(|| load).await.copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_is_reached_by_equal_cost() {
        assert!(require(999_999, Some(1.0), "the turn", "k").is_ok());
        assert!(require(u64::MAX, None, "the turn", "k").is_ok());
        let failure = require(1_000_000, Some(1.0), "the turn", "models.maxUsdPerTurn");
        let failure = failure.unwrap_err();
        assert_eq!(failure.reason, Reason::BudgetExceeded);
        assert_eq!(failure.message, "the turn has cost 1.00 USD; models.maxUsdPerTurn is 1");
        assert_eq!(dollars(1234), "0.0012 USD");
    }
}
