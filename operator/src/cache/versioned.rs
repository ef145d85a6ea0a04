//! Values with the resourceVersion they were seen at.

use ankka_desired::ChildKind;

/// A watch stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// AnkkaServices.
    Services,
    /// AnkkaProjects.
    Projects,
    /// Namespaces labelled as ours.
    Namespaces,
    /// NetworkPolicies labelled as ours.
    Policies,
    /// Pods labelled as ours.
    Pods,
    /// ControllerRevisions labelled as ours.
    Revisions,
    /// Children of one kind labelled as ours.
    Child(ChildKind),
}

/// Where a state comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A listing: taken as it is, whatever was known.
    Listed,
    /// A watch event: an older state changes nothing.
    Watched,
    /// The answer to a write or read of our own.
    Answered,
    /// The answer to a read of an object that no watch tells about.
    Probed,
}

/// Streams that are not of children.
const OTHERS: usize = 6;

const STREAMS: usize = OTHERS + ChildKind::all().len();

/// Which listing of each stream is the latest.
#[derive(Debug, Default)]
pub(super) struct Epochs([u8; STREAMS]);

impl Epochs {
    pub(super) fn begin(&mut self, stream: Stream) {
        let epoch = &mut self.0[index(stream)];
        *epoch = epoch.wrapping_add(1);
    }

    pub(super) fn current(&self, stream: Stream) -> u8 {
        self.0[index(stream)]
    }

    /// The epoch to mark a state with. What only our own write or read has shown does not count as listed.
    pub(super) fn mark(&self, stream: Stream, source: Source) -> u8 {
        match source {
            Source::Listed | Source::Watched => self.current(stream),
            Source::Answered | Source::Probed => self.current(stream).wrapping_sub(1),
        }
    }
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Services => 0,
        Stream::Projects => 1,
        Stream::Namespaces => 2,
        Stream::Policies => 3,
        Stream::Pods => 4,
        Stream::Revisions => 5,
        Stream::Child(kind) => OTHERS + kind as usize,
    }
}

/// A value, the resourceVersion it was seen at, and the listing that has it.
#[derive(Clone, Debug)]
pub(super) struct Versioned<T> {
    pub(super) value: T,
    version: u64,
    epoch: u8,
    probed: bool,
}

impl<T> Versioned<T> {
    pub(super) fn new(version: u64, epoch: u8, value: T) -> Self {
        Self { value, version, epoch, probed: false }
    }
}

/// A place for a value that may be absent.
#[derive(Clone, Debug)]
pub(super) struct Slot<T>(Option<Versioned<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: PartialEq> Slot<T> {
    pub(super) fn value(&self) -> Option<&T> {
        self.0.as_ref().map(|known| &known.value)
    }

    /// Whether no watch tells about the value.
    pub(super) fn is_probed(&self) -> bool {
        self.0.as_ref().is_some_and(|known| known.probed)
    }

    /// Whether `new` is no older than what is known.
    pub(super) fn accepts(&self, new: &Versioned<T>, source: Source) -> bool {
        source == Source::Listed || self.0.as_ref().is_none_or(|known| known.version <= new.version)
    }

    /// Takes `new` unless it is older. True when the value is new or differs.
    pub(super) fn put(&mut self, mut new: Versioned<T>, source: Source) -> bool {
        if !self.accepts(&new, source) {
            return false;
        }
        new.probed = source == Source::Probed;
        let Some(known) = &self.0 else {
            self.0 = Some(new);
            return true;
        };
        if matches!(source, Source::Answered | Source::Probed) {
            new.epoch = known.epoch;
        }
        let changed = known.value != new.value;
        self.0 = Some(new);
        changed
    }

    /// Removes the value unless it is newer than `version`.
    pub(super) fn remove(&mut self, version: u64) -> bool {
        self.0.take_if(|known| known.version <= version).is_some()
    }

    /// Removes the value if the listing `epoch` does not have it.
    pub(super) fn drop_older(&mut self, epoch: u8) -> bool {
        self.0.take_if(|known| known.epoch != epoch).is_some()
    }
}
