//! Observed objects as small as they can be kept: thousands of services stand in memory in this form, and are expanded
//! one at a time when they are decided about.

use std::sync::Arc;

use ankka_crds::names;
use ankka_desired::{ChildKind, OwnFields, Owner, Seen, revisions::RevisionSeen};

/// A UID. Kubernetes' own take 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Uid {
    Binary([u8; 16]),
    Text(Box<str>),
}

impl Uid {
    pub(crate) fn new(text: &str) -> Self {
        match parse(text) {
            Some(bytes) => Self::Binary(bytes),
            None => Self::Text(text.into()),
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Binary(bytes) => format(*bytes),
            Self::Text(text) => text.to_string(),
        }
    }
}

fn parse(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.split('-').collect();
    let value = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
    // Only what comes out again as it went in: no capitals, no other grouping, no sign.
    (format(value) == text).then_some(value)
}

fn format(bytes: [u8; 16]) -> String {
    let value = u128::from_be_bytes(bytes);
    let part = |shift: u32, digits: u32| (value >> shift) & ((1 << (digits * 4)) - 1);
    format!("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", part(96, 8), part(80, 4), part(64, 4), part(48, 4), part(0, 12))
}

/// A [`Seen`], in a quarter of its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredChild {
    uid: Uid,
    owner: StoredOwner,
    rendered: Option<Box<str>>,
    foreign: bool,
    terminating: bool,
    own: Arc<OwnFields>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum StoredOwner {
    None,
    /// The service whose child it is by its name.
    Service(Uid),
    Other(Box<Owner>),
}

impl StoredChild {
    /// `service` is the service whose child this is by its name.
    pub(crate) fn new(seen: Seen, service: &str, own: Arc<OwnFields>) -> Self {
        let owner = match seen.owner {
            None => StoredOwner::None,
            Some(owner) if owner.kind == SERVICE_KIND && owner.name == service => {
                StoredOwner::Service(Uid::new(&owner.uid))
            }
            Some(owner) => StoredOwner::Other(Box::new(owner)),
        };
        Self {
            uid: Uid::new(&seen.uid),
            owner,
            rendered: seen.rendered.map(String::into_boxed_str),
            foreign: seen.foreign,
            terminating: seen.terminating,
            own,
        }
    }

    pub(crate) fn seen(&self, service: &str) -> Seen {
        let owner = match &self.owner {
            StoredOwner::None => None,
            StoredOwner::Service(uid) => {
                Some(Owner { kind: SERVICE_KIND.to_owned(), name: service.to_owned(), uid: uid.text() })
            }
            StoredOwner::Other(owner) => Some(Owner::clone(owner)),
        };
        Seen {
            uid: self.uid.text(),
            owner,
            rendered: self.rendered.as_deref().map(str::to_owned),
            foreign: self.foreign,
            terminating: self.terminating,
            own: OwnFields::clone(&self.own),
        }
    }
}

const SERVICE_KIND: &str = "AnkkaService";

/// A [`RevisionSeen`] in a third of its memory: there are up to fifty of each service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRevision {
    uid: Uid,
    /// The same for all of one service, and held once.
    owner: Option<Arc<Uid>>,
    generation: i64,
    size: u32,
    /// What its name ends in. Everything before follows from the service.
    digits: [u8; 12],
    terminating: bool,
}

impl StoredRevision {
    /// None when no ControllerRevision of `service` has that name. `known` are the others of the service.
    pub(crate) fn new<'a>(
        seen: &RevisionSeen,
        service: &str,
        mut known: impl Iterator<Item = &'a Self>,
    ) -> Option<Self> {
        let of_service = names::service_of_revision(&seen.name) == Some(service);
        let digits = seen.name.as_bytes().last_chunk().filter(|_| of_service)?;
        let owner = seen.owner.as_deref().map(|owner| {
            let owner = Uid::new(owner);
            let held = known.find_map(|other| other.owner.clone().filter(|held| **held == owner));
            held.unwrap_or_else(|| Arc::new(owner))
        });
        Some(Self {
            uid: Uid::new(&seen.uid),
            owner,
            generation: seen.generation,
            // No object is larger than a few mebibytes, whatever its annotation says.
            size: u32::try_from(seen.size).unwrap_or(u32::MAX),
            digits: *digits,
            terminating: seen.terminating,
        })
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        name.as_bytes().ends_with(&self.digits)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.digits == other.digits
    }

    pub(crate) fn seen(&self, service: &str) -> RevisionSeen {
        RevisionSeen {
            name: names::revision(service, &String::from_utf8_lossy(&self.digits)),
            uid: self.uid.text(),
            owner: self.owner.as_ref().map(|owner| owner.text()),
            generation: self.generation,
            size: u64::from(self.size),
            terminating: self.terminating,
        }
    }
}

/// Which fields are ours is the same for most children of one kind: each such set is held once.
#[derive(Debug, Default)]
pub(crate) struct Sets([Vec<Arc<OwnFields>>; ChildKind::all().len()]);

/// How many sets of one kind are remembered. Services with variables of their own have sets of their own.
const REMEMBERED: usize = 16;

impl Sets {
    pub(crate) fn share(&mut self, kind: ChildKind, own: &OwnFields) -> Arc<OwnFields> {
        let known = &mut self.0[kind as usize];
        if let Some(place) = known.iter().position(|set| **set == *own) {
            known[..=place].rotate_right(1);
        } else {
            known.truncate(REMEMBERED - 1);
            known.insert(0, Arc::new(own.clone()));
        }
        known[0].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_comes_out_as_it_went_in() {
        for text in [
            "0a1b2c3d-0000-4444-8888-00000000000f",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
            "0A1B2C3D-0000-4444-8888-00000000000F",
            "0a1b2c3d000044448888-00000000000f",
            "+a1b2c3d-0000-4444-8888-00000000000f",
            "uid-1",
            "",
        ] {
            assert_eq!(Uid::new(text).text(), text);
        }
        assert!(matches!(Uid::new("0a1b2c3d-0000-4444-8888-00000000000f"), Uid::Binary(_)));
    }

    #[test]
    fn what_was_seen_comes_out_as_it_went_in() {
        let owner = |kind: &str, name: &str| {
            Some(Owner { kind: kind.into(), name: name.into(), uid: "0a1b2c3d-0000-4444-8888-00000000000f".into() })
        };
        for owner in [None, owner("AnkkaService", "cart"), owner("AnkkaService", "other"), owner("Job", "cart")] {
            let seen = Seen {
                uid: "0a1b2c3d-0000-4444-8888-000000000001".into(),
                owner,
                rendered: Some("00ff".into()),
                foreign: true,
                ..Seen::default()
            };
            let own = Sets::default().share(ChildKind::Role, &seen.own);
            assert_eq!(StoredChild::new(seen.clone(), "cart", own).seen("cart"), seen);
        }
    }

    fn revision(number: u32, owner: Option<&str>) -> RevisionSeen {
        RevisionSeen {
            name: format!("ankka-cart-2-{number:012x}"),
            uid: format!("0a1b2c3d-0000-4444-8888-{number:012x}"),
            owner: owner.map(str::to_owned),
            generation: i64::from(number),
            size: 900_000,
            terminating: number == 2,
        }
    }

    #[test]
    fn a_kept_descriptor_comes_out_as_it_went_in() {
        for owner in [None, Some("0a1b2c3d-0000-4444-8888-00000000000f"), Some("another")] {
            for number in [1, 2] {
                let seen = revision(number, owner);
                let stored = StoredRevision::new(&seen, "cart-2", std::iter::empty()).expect("its name fits");
                assert_eq!(stored.seen("cart-2"), seen);
                assert!(stored.is_named(&seen.name));
            }
        }
        assert_eq!(StoredRevision::new(&revision(1, None), "cart", std::iter::empty()), None);
    }

    #[test]
    fn the_descriptors_that_are_kept_of_ten_thousand_services_take_less_than_forty_megabytes() {
        let slot = size_of::<super::super::versioned::Slot<StoredRevision>>();
        assert!(slot * 50 * 10_000 <= 40_000_000, "{slot} bytes each");
        let owner = Some("0a1b2c3d-0000-4444-8888-00000000000f");
        let first = StoredRevision::new(&revision(1, owner), "cart-2", std::iter::empty()).expect("its name fits");
        let second = StoredRevision::new(&revision(2, owner), "cart-2", [&first].into_iter()).expect("its name fits");
        let (first, second) = (first.owner.expect("owned"), second.owner.expect("owned"));
        assert!(Arc::ptr_eq(&first, &second), "the owner is held once");
    }

    #[test]
    fn equal_sets_are_held_once() {
        let mut sets = Sets::default();
        let first = sets.share(ChildKind::Role, &OwnFields::default());
        let second = sets.share(ChildKind::Role, &OwnFields::default());
        assert!(Arc::ptr_eq(&first, &second));
    }
}
