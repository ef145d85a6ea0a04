//! Two replicas and a clock, interleaved in any way, on a cluster that keeps versions as the real one does.

use proptest::{collection::vec, prelude::*};

use super::*;

/// How long an API server may go on with a configuration that was replaced: less than the overlap.
const LAG: Moment = 900;
const LIFETIMES: Lifetimes = Lifetimes { authority: 36_000, leaf: 6_000, overlap: 2_000 };

/// Makes authorities without keys, of which only the name matters.
#[derive(Default)]
struct Names(u64);

impl Mint for Names {
    type Error = std::convert::Infallible;

    fn authority(&mut self, _: Moment, not_after: Moment) -> Result<Authority, Self::Error> {
        self.0 += 1;
        let id = format!("ca{}", self.0);
        Ok(Authority { certificate: id.clone(), id, not_after, key: "key".to_owned() })
    }

    fn leaf(&mut self, authority: &Authority, _: Moment, not_after: Moment) -> Result<Leaf, Self::Error> {
        self.0 += 1;
        let certificate = format!("leaf{}", self.0);
        Ok(Leaf { issuer: authority.id.clone(), not_after, certificate, key: "key".to_owned() })
    }
}

/// The cluster: the Secret, both configurations, and what API servers may still hold of them.
#[derive(Default)]
struct World {
    now: Moment,
    mint: Names,
    secret: (u64, State),
    configurations: [(u64, Vec<Authority>); 2],
    /// Bundles that were replaced, with when.
    replaced: [Vec<(Moment, Vec<Authority>)>; 2],
    leaves: BTreeSet<Id>,
    authorities: BTreeSet<Id>,
}

/// One replica, between two of its calls.
#[derive(Default)]
struct Replica {
    leaf: Option<Leaf>,
    began: Moment,
    at: At,
}

#[derive(Default)]
enum At {
    #[default]
    Start,
    ConfigurationsRead([u64; 2], Seen),
    SecretRead([u64; 2], Seen, u64, State),
    Bundles([u64; 2], Seen, State, usize),
}

impl Replica {
    /// The next call of a pass, as `Keeper` makes them.
    fn call(&mut self, world: &mut World) {
        self.at = match std::mem::take(&mut self.at) {
            At::Start => {
                self.began = world.now;
                let bundles = world.configurations.iter().map(|(_, bundle)| bundle.clone()).collect();
                At::ConfigurationsRead([world.configurations[0].0, world.configurations[1].0], Seen { bundles })
            }
            At::ConfigurationsRead(versions, seen) => {
                if world.now - self.began > LIFETIMES.overlap / 2 {
                    At::Start
                } else {
                    At::SecretRead(versions, seen, world.secret.0, world.secret.1.clone())
                }
            }
            At::SecretRead(versions, seen, version, state) => {
                let Ok(wanted) = step(&state, &seen, world.now, &LIFETIMES, &mut world.mint);
                match wanted {
                    Some(wanted) => {
                        if world.secret.0 == version {
                            world.leaves.extend(wanted.leaf.iter().map(|leaf| leaf.certificate.clone()));
                            world.authorities.extend(wanted.current.iter().map(|ca| ca.id.clone()));
                            world.secret = (version + 1, wanted);
                        }
                        At::Start
                    }
                    None => At::Bundles(versions, seen, state, 0),
                }
            }
            At::Bundles(versions, seen, state, index) if index < 2 => {
                let wanted: Vec<Authority> =
                    state.trusted().map(|ca| Authority { key: String::new(), ..ca.clone() }).collect();
                if seen.bundles[index] != wanted && world.configurations[index].0 == versions[index] {
                    let former = std::mem::replace(&mut world.configurations[index].1, wanted);
                    world.configurations[index].0 += 1;
                    world.replaced[index].push((world.now, former));
                }
                At::Bundles(versions, seen, state, index + 1)
            }
            At::Bundles(_, _, state, _) => {
                self.leaf = state.leaf.or(self.leaf.take());
                At::Start
            }
        };
    }
}

impl World {
    /// Whether every API server trusts `issuer`, whatever it has heard of until now.
    fn trusted(&self, issuer: &str) -> bool {
        let trusts = |bundle: &[Authority]| bundle.iter().any(|ca| ca.id == issuer);
        (0..2).all(|index| {
            let held = self.replaced[index].iter().filter(|(when, _)| self.now - when < LAG).map(|(_, bundle)| bundle);
            trusts(&self.configurations[index].1) && held.clone().all(|bundle| bundle.is_empty() || trusts(bundle))
        })
    }

    fn settle(&mut self, replicas: &mut [Replica]) {
        for _ in 0..60 {
            for replica in replicas.iter_mut() {
                replica.call(self);
            }
        }
    }
}

fn check(world: &World, replicas: &[Replica]) {
    for (index, replica) in replicas.iter().enumerate() {
        if let Some(leaf) = replica.leaf.as_ref().filter(|leaf| leaf.not_after > world.now) {
            assert!(
                world.trusted(&leaf.issuer),
                "replica {index} serves {} of {}, not trusted at {}: {:?}",
                leaf.certificate,
                leaf.issuer,
                world.now,
                world.configurations
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Moves: a call of the first or second replica, or time passing, up to a replica frozen for longer than anything lives.
    #[test]
    fn whatever_is_served_is_trusted(moves in vec((0..5u8, 1..1_500i64), 0..1_500)) {
        let mut world = World { now: 1_000_000, ..World::default() };
        let mut replicas = [Replica::default(), Replica::default()];
        world.settle(&mut replicas);
        for (which, time) in moves {
            match which {
                0 | 1 => replicas[usize::from(which)].call(&mut world),
                2 => (0..9).for_each(|_| replicas[0].call(&mut world)),
                3 => (0..9).for_each(|_| replicas[1].call(&mut world)),
                _ => world.now += time,
            }
            check(&world, &replicas);
        }
    }

    /// While both replicas run, each serves a leaf that has not expired, and leaves and authorities are replaced on time.
    #[test]
    fn certificates_are_replaced_while_they_last(steps in vec((0..2usize, 20..120i64), 4_000)) {
        let mut world = World { now: 1_000_000, ..World::default() };
        let mut replicas = [Replica::default(), Replica::default()];
        world.settle(&mut replicas);
        let began = world.now;
        for (which, time) in steps {
            world.now += time;
            // The other one makes a call as well, so that none is left behind: only the order varies.
            replicas[which].call(&mut world);
            replicas[1 - which].call(&mut world);
            check(&world, &replicas);
            for replica in &replicas {
                prop_assert!(replica.leaf.as_ref().is_some_and(|leaf| leaf.not_after > world.now));
            }
        }
        let passed = world.now - began;
        prop_assert!(world.leaves.len() >= usize::try_from(passed / LIFETIMES.leaf)?, "{} leaves", world.leaves.len());
        prop_assert!(world.authorities.len() >= usize::try_from(passed / LIFETIMES.authority)?);
        prop_assert!(world.secret.1.former.len() <= 2, "former authorities are dropped");
    }
}

fn authority(id: &str, not_after: Moment) -> Authority {
    Authority { id: id.to_owned(), not_after, certificate: id.to_owned(), key: "key".to_owned() }
}

fn seen(ids: &[&str]) -> Seen {
    Seen { bundles: vec![ids.iter().map(|id| authority(id, i64::MAX)).collect(); 2] }
}

fn stepped(state: &State, seen: &Seen, now: Moment) -> Option<State> {
    let Ok(next) = step(state, seen, now, &LIFETIMES, &mut Names(100));
    next
}

#[test]
fn where_nothing_is_trusted_the_first_authority_signs_at_once() {
    let state = stepped(&State::default(), &seen(&[]), 0).unwrap();
    assert_eq!(state.leaf.as_ref().unwrap().issuer, state.current.as_ref().unwrap().id);
    assert!(state.next.is_none() && state.former.is_empty());
    assert_eq!(stepped(&state, &seen(&[&state.current.as_ref().unwrap().id]), 10), None, "and then nothing is due");
}

#[test]
fn a_lost_secret_keeps_trusted_what_replicas_serve_until_the_new_authority_is() {
    let state = stepped(&State::default(), &seen(&["lost"]), 0).unwrap();
    assert!(state.current.is_none() && state.leaf.is_none(), "nothing signs yet");
    let next = state.next.clone().unwrap();
    assert_eq!(state.bundle(), format!("{}lost", next.id));
    let state = stepped(&state, &seen(&[&next.id, "lost"]), 100).unwrap();
    assert_eq!(state.next_trusted_at, Some(100));
    assert_eq!(stepped(&state, &seen(&[&next.id, "lost"]), 100 + LIFETIMES.overlap - 1), None);
    let state = stepped(&state, &seen(&[&next.id, "lost"]), 100 + LIFETIMES.overlap).unwrap();
    assert_eq!(state.leaf.as_ref().unwrap().issuer, next.id);
    assert_eq!(state.former.len(), 1);
    let state = stepped(&state, &seen(&[&next.id, "lost"]), LIFETIMES.leaf + 1).unwrap();
    assert!(state.former.is_empty());
}

#[test]
fn an_authority_written_past_the_protocol_is_trusted_before_it_signs() {
    let planted = State { current: Some(authority("planted", 36_000)), ..State::default() };
    let state = stepped(&planted, &seen(&["served"]), 0).unwrap();
    assert!(state.current.is_none() && state.leaf.is_none());
    assert_eq!(state.bundle(), "plantedserved");
}

#[test]
fn a_wait_begins_again_when_a_configuration_lost_the_next_authority() {
    let (current, next) = (authority("one", 12_000), authority("two", 40_000));
    let leaf =
        Leaf { issuer: "one".to_owned(), not_after: 6_000, certificate: "leaf".to_owned(), key: "key".to_owned() };
    let state = State {
        current: Some(current),
        next: Some(next),
        next_trusted_at: Some(0),
        former: Vec::new(),
        leaf: Some(leaf),
    };
    let wiped = Seen { bundles: vec![seen(&["one", "two"]).bundles[0].clone(), Vec::new()] };
    assert_eq!(stepped(&state, &wiped, 3_000).unwrap().next_trusted_at, None);
    assert_eq!(stepped(&state, &seen(&["one", "two"]), 3_000).unwrap().current.unwrap().id, "two");
}

#[test]
fn a_leaf_that_is_missing_or_has_expired_is_made_again_and_never_outlives_its_authority() {
    let current = authority("one", 36_000);
    let state = State { current: Some(current), ..State::default() };
    let made = stepped(&state, &seen(&["one"]), 0).unwrap();
    assert_eq!(made.leaf.as_ref().unwrap().not_after, LIFETIMES.leaf);
    let expired = stepped(&made, &seen(&["one"]), LIFETIMES.leaf).unwrap();
    assert_eq!(expired.leaf.unwrap().not_after, 2 * LIFETIMES.leaf);
    let last = stepped(&state, &seen(&["one"]), 35_000).unwrap();
    assert_eq!(last.leaf.as_ref().unwrap().not_after, 36_000);
    let with_next = State { next: last.next.clone(), ..last };
    let again = stepped(&with_next, &seen(&["one"]), 35_500);
    assert!(again.is_none_or(|again| again.leaf == with_next.leaf), "one that could not live longer is not made");
}

/// One of both stops after any of its calls while an authority is replaced, and goes on when everything it saw is long gone.
#[test]
fn a_replica_frozen_between_two_calls_and_thawed_much_later_changes_nothing() {
    for calls in 0..60 {
        let mut world = World { now: 1_000_000, ..World::default() };
        let mut replicas = [Replica::default(), Replica::default()];
        world.settle(&mut replicas);
        world.now += 25_000;
        for call in 0..calls {
            world.now += 100 * i64::from(call % 2);
            replicas[0].call(&mut world);
        }
        for _ in 0..800 {
            world.now += 100;
            (0..8).for_each(|_| replicas[1].call(&mut world));
            check(&world, &replicas);
        }
        for _ in 0..12 {
            replicas[0].call(&mut world);
            check(&world, &replicas);
        }
    }
}

#[test]
fn what_was_made_for_a_longer_life_than_is_asked_for_now_is_replaced() {
    let made = stepped(&State::default(), &seen(&[]), 0).expect("a leaf and its authority");
    let id = made.current.clone().expect("an authority").id;
    let short = Lifetimes { authority: 9_000, leaf: 2_000, overlap: 1_000 };
    let Ok(next) = step(&made, &seen(&[&id]), 0, &short, &mut Names(100));
    let next = next.expect("a shorter life asks for a step");
    assert_eq!(next.leaf.as_ref().map(|leaf| leaf.not_after), Some(2_000));
    assert_eq!(next.next.as_ref().map(|next| next.not_after), Some(9_000));
    let Ok(again) = step(&next, &seen(&[&id]), 0, &short, &mut Names(200));
    assert_eq!(again, None);
}

#[test]
fn an_authority_that_ends_within_the_overlap_is_not_waited_for() {
    let current = authority("one", 100_000);
    let next = authority("two", 1_000_000);
    let state = State { current: Some(current), next: Some(next), next_trusted_at: Some(0), ..State::default() };
    let long = Lifetimes { authority: 900_000, leaf: 90_000, overlap: 120_000 };
    let at = |now| step(&state, &seen(&["one", "two"]), now, &long, &mut Names(100)).expect("names never fail");
    assert_eq!(at(HEARD - 1).and_then(|state| state.current).map(|ca| ca.id).as_deref(), Some("one"));
    assert_eq!(at(HEARD).and_then(|state| state.current).map(|ca| ca.id).as_deref(), Some("two"));
}
