//! Limits for connections of unknown peers: few in total, fewer per address, and the oldest is
//! evicted.
//!
//! A paired device cannot be told from a stranger before its handshake has finished. New
//! connections are therefore never refused because of existing ones: the oldest connection of the
//! same address is closed instead, or the oldest of the address with most connections. A device
//! needs its slot for one handshake only; a stranger that stays is the first to be closed.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// Maximum connections of all addresses.
const MAX_CONNECTIONS: usize = 32;
/// Maximum connections per address; per network for IPv6, where a machine can choose any address of
/// its network.
const MAX_PER_ADDRESS: usize = 8;

/// The limits of a listener. Clones share them.
#[derive(Clone, Default)]
pub struct ConnectionLimit(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    /// Open connections, the oldest first.
    open: VecDeque<(u64, IpAddr, CancellationToken)>,
}

/// The slot of one connection; released when dropped.
pub struct ConnectionSlot {
    limit: ConnectionLimit,
    id: u64,
    /// Cancelled when another connection needs the slot.
    pub abort: CancellationToken,
}

impl ConnectionLimit {
    /// Reserves a slot for a connection from `address`, evicting another connection if necessary.
    pub fn enter(&self, address: IpAddr) -> ConnectionSlot {
        let from = network(address);
        let mut state = self.state();
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        state.open.iter().for_each(|(_, at, _)| *counts.entry(*at).or_default() += 1);
        let crowded = if counts.get(&from).is_some_and(|n| *n >= MAX_PER_ADDRESS) {
            Some(from)
        } else if state.open.len() >= MAX_CONNECTIONS {
            // On a tie, the oldest connection is evicted.
            let max = counts.values().max().copied();
            state.open.iter().map(|(_, at, _)| *at).find(|at| counts.get(at).copied() == max)
        } else {
            None
        };
        let oldest =
            crowded.and_then(|address| state.open.iter().position(|(_, at, _)| *at == address));
        if let Some((_, at, abort)) = oldest.and_then(|at| state.open.remove(at)) {
            tracing::debug!(%at, "closing an unauthenticated connection to accept another");
            abort.cancel();
        }
        let id = state.next;
        let abort = CancellationToken::new();
        state.next += 1;
        state.open.push_back((id, from, abort.clone()));
        drop(state);
        ConnectionSlot { limit: self.clone(), id, abort }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limit.state().open.retain(|(id, ..)| *id != self.id);
    }
}

/// Returns the unit that counts as one address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn oldest_connection_of_crowded_address_is_evicted() {
        let limit = ConnectionLimit::default();
        let other = limit.enter(address("10.0.0.2"));
        let mut mine: VecDeque<ConnectionSlot> =
            (0..MAX_PER_ADDRESS).map(|_| limit.enter(address("10.0.0.1"))).collect();
        assert!(mine.iter().all(|slot| !slot.abort.is_cancelled()));
        let late = limit.enter(address("::ffff:10.0.0.1"));
        assert!(mine[0].abort.is_cancelled() && !mine[1].abort.is_cancelled());
        // After a slot was released, no eviction is needed.
        mine.drain(..2);
        let _later = limit.enter(address("10.0.0.1"));
        assert!(mine.iter().chain([&late, &other]).all(|slot| !slot.abort.is_cancelled()));
    }

    #[test]
    fn total_is_limited_and_largest_address_is_evicted_first() {
        let limit = ConnectionLimit::default();
        let single = limit.enter(address("10.0.1.1"));
        let greedy: Vec<ConnectionSlot> =
            (0..MAX_PER_ADDRESS).map(|_| limit.enter(address("fd00::1:2:3:4"))).collect();
        // Another address of the same network counts as the same.
        assert!(!greedy[0].abort.is_cancelled());
        let same = limit.enter(address("fd00::9:9:9:9"));
        assert!(greedy[0].abort.is_cancelled());
        let rest: Vec<ConnectionSlot> = (0..)
            .map(|n| address(&format!("10.0.2.{n}")))
            .map(|a| limit.enter(a))
            .take(MAX_CONNECTIONS - MAX_PER_ADDRESS - 1)
            .collect();
        assert_eq!(limit.state().open.len(), MAX_CONNECTIONS);
        let newest = limit.enter(address("10.0.3.1"));
        assert!(greedy[1].abort.is_cancelled() && !greedy[2].abort.is_cancelled());
        assert!(
            rest.iter().chain([&single, &same, &newest]).all(|slot| !slot.abort.is_cancelled())
        );
        assert_eq!(limit.state().open.len(), MAX_CONNECTIONS);
        drop((single, greedy, same, rest, newest));
        assert_eq!(limit.state().open.len(), 0);
    }
}
