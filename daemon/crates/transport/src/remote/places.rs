//! Places of connections that are of nobody known: few in all, fewer for one address, and whoever came first makes way.
//!
//! Nobody can tell a paired device from a stranger before its handshake is over. So a new connection is never refused for
//! those that are there: the oldest of its own address is cut for it, or the oldest of the address that holds most. A device
//! needs its place for one handshake and no longer; a stranger who holds on is the first to go.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// Connections at once, of all addresses.
const ALL: usize = 32;
/// Of one address; of one network of IPv6, for which a machine may choose any address.
const EACH: usize = 8;

/// The places of a listener. Clones share them.
#[derive(Clone, Default)]
pub struct Places(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    next: u64,
    /// In the order of their coming.
    open: VecDeque<(u64, IpAddr, CancellationToken)>,
}

/// One connection's place; given back when dropped.
pub struct Place {
    places: Places,
    id: u64,
    /// Cancelled when somebody else needs it.
    pub cut: CancellationToken,
}

impl Places {
    /// A place for a connection from `address`, which somebody else's may have to end for.
    pub fn enter(&self, address: IpAddr) -> Place {
        let from = network(address);
        let mut state = self.state();
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        state.open.iter().for_each(|(_, at, _)| *counts.entry(*at).or_default() += 1);
        let crowded = if counts.get(&from).is_some_and(|n| *n >= EACH) {
            Some(from)
        } else if state.open.len() >= ALL {
            // Of several that hold as many, the one that came first.
            let most = counts.values().max().copied();
            state.open.iter().map(|(_, at, _)| *at).find(|at| counts.get(at).copied() == most)
        } else {
            None
        };
        let oldest = crowded.and_then(|address| state.open.iter().position(|(_, at, _)| *at == address));
        if let Some((_, at, cut)) = oldest.and_then(|at| state.open.remove(at)) {
            tracing::debug!(%at, "a connection of nobody known makes way for another");
            cut.cancel();
        }
        let (id, cut) = (state.next, CancellationToken::new());
        state.next += 1;
        state.open.push_back((id, from, cut.clone()));
        drop(state);
        Place { places: self.clone(), id, cut }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.state().open.retain(|(id, ..)| *id != self.id);
    }
}

/// What counts as one address.
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
    fn the_oldest_of_a_crowded_address_makes_way() {
        let places = Places::default();
        let other = places.enter(address("10.0.0.2"));
        let mut mine: VecDeque<Place> = (0..EACH).map(|_| places.enter(address("10.0.0.1"))).collect();
        assert!(mine.iter().all(|place| !place.cut.is_cancelled()));
        let late = places.enter(address("::ffff:10.0.0.1"));
        assert!(mine[0].cut.is_cancelled() && !mine[1].cut.is_cancelled());
        // A place that was given back needs nobody to go.
        mine.drain(..2);
        let _later = places.enter(address("10.0.0.1"));
        assert!(mine.iter().chain([&late, &other]).all(|place| !place.cut.is_cancelled()));
    }

    #[test]
    fn in_all_there_are_as_many_as_may_be_and_the_greediest_goes_first() {
        let places = Places::default();
        let single = places.enter(address("10.0.1.1"));
        let greedy: Vec<Place> = (0..EACH).map(|_| places.enter(address("fd00::1:2:3:4"))).collect();
        // Another address of the same network counts as the same.
        assert!(!greedy[0].cut.is_cancelled());
        let same = places.enter(address("fd00::9:9:9:9"));
        assert!(greedy[0].cut.is_cancelled());
        let rest: Vec<Place> = (0..)
            .map(|n| address(&format!("10.0.2.{n}")))
            .map(|a| places.enter(a))
            .take(ALL - EACH - 1)
            .collect();
        assert_eq!(places.state().open.len(), ALL);
        let newest = places.enter(address("10.0.3.1"));
        assert!(greedy[1].cut.is_cancelled() && !greedy[2].cut.is_cancelled());
        assert!(rest.iter().chain([&single, &same, &newest]).all(|place| !place.cut.is_cancelled()));
        assert_eq!(places.state().open.len(), ALL);
        drop((single, greedy, same, rest, newest));
        assert_eq!(places.state().open.len(), 0);
    }
}
