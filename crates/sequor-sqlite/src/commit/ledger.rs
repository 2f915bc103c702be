//! What the file holds, as far as a batch asks for it, and what the batch does to it.

use std::collections::HashMap;

use sequor_core::admission::{Ledger, UniqueWrites};
use sequor_core::{
    CommandId, Commit, IdempotencyKey, Record, StreamId, TenantId, UniqueChange, UniqueKey, Version,
};

/// A view of the file on which a batch is judged in order. Each accepted commit is applied, so
/// that the next one is judged as if it came later.
#[derive(Debug, Default)]
pub(crate) struct BatchLedger {
    /// The file's data version when the view was read.
    pub(crate) data_version: i64,
    records: HashMap<(TenantId, IdempotencyKey), Remembered>,
    heads: HashMap<StreamId, Head>,
    holders: HashMap<(TenantId, UniqueKey), Change<Option<StreamId>>>,
    held: HashMap<StreamId, Vec<UniqueKey>>,
}

/// What is remembered under a key.
#[derive(Debug)]
enum Remembered {
    Nothing,
    Stored(Record),
    /// By a commit of this batch, if the batch succeeds.
    Soon(Record),
}

/// The end of a stream.
#[derive(Debug, Default)]
struct Head {
    version: Change<Version>,
    /// Who made the version that will be. Known where a commit asks for it.
    maker: Option<CommandId>,
    is_maker_wanted: bool,
}

/// A value as it is stored, and as it will be.
#[derive(Clone, Debug, Default)]
struct Change<T> {
    stored: T,
    next: T,
}

impl<T: Clone> Change<T> {
    fn none(value: T) -> Self {
        Self { stored: value.clone(), next: value }
    }
}

impl BatchLedger {
    /// A view that knows what it will be asked, and nothing yet.
    pub(crate) fn of<'a>(commits: impl Iterator<Item = &'a Commit>) -> Self {
        let mut ledger = Self::default();
        for commit in commits {
            let tenant = commit.meta.tenant;
            if let Some(key) = &commit.meta.key {
                ledger.records.insert((tenant, key.clone()), Remembered::Nothing);
            }
            for write in &commit.streams {
                let head = ledger.heads.entry(write.stream.clone()).or_default();
                head.is_maker_wanted |= write.after.is_some();
                if !write.unique.is_empty() {
                    ledger.held.insert(write.stream.clone(), Vec::new());
                }
                for change in &write.unique {
                    if let UniqueChange::Hold(unique) = change {
                        ledger.holders.insert((tenant, unique.clone()), Change::default());
                    }
                }
            }
        }
        ledger
    }

    pub(crate) fn wanted_records(&self) -> Vec<(TenantId, IdempotencyKey)> {
        self.records.keys().cloned().collect()
    }

    /// The streams, each with whether it is asked who made its version.
    pub(crate) fn wanted_heads(&self) -> Vec<(StreamId, bool)> {
        let wanted = |(stream, head): (&StreamId, &Head)| (stream.clone(), head.is_maker_wanted);
        self.heads.iter().map(wanted).collect()
    }

    pub(crate) fn wanted_holders(&self) -> Vec<(TenantId, UniqueKey)> {
        self.holders.keys().cloned().collect()
    }

    pub(crate) fn wanted_held(&self) -> Vec<StreamId> {
        self.held.keys().cloned().collect()
    }

    /// Whether unique keys are touched at all.
    pub(crate) fn has_unique(&self) -> bool {
        !self.held.is_empty()
    }

    pub(crate) fn found_record(&mut self, key: (TenantId, IdempotencyKey), record: Record) {
        self.records.insert(key, Remembered::Stored(record));
    }

    pub(crate) fn found_head(
        &mut self,
        stream: &StreamId,
        version: Version,
        maker: Option<CommandId>,
    ) {
        let head = self.heads.entry(stream.clone()).or_default();
        (head.version, head.maker) = (Change::none(version), maker);
    }

    pub(crate) fn found_holder(&mut self, unique: (TenantId, UniqueKey), holder: StreamId) {
        self.holders.insert(unique, Change::none(Some(holder)));
    }

    pub(crate) fn found_held(&mut self, stream: &StreamId, unique: UniqueKey) {
        let key = (stream.tenant, unique.clone());
        self.holders.insert(key, Change::none(Some(stream.clone())));
        self.held.entry(stream.clone()).or_default().push(unique);
    }

    /// Takes in an accepted commit.
    pub(crate) fn apply(&mut self, commit: &Commit, unique: UniqueWrites, record: &Record) {
        let tenant = commit.meta.tenant;
        if let Some(key) = &commit.meta.key {
            self.records.insert((tenant, key.clone()), Remembered::Soon(record.clone()));
        }
        for write in &commit.streams {
            let head = self.heads.entry(write.stream.clone()).or_default();
            head.version.next = write.next;
            if write.next != write.expected {
                head.maker = Some(commit.meta.command_id);
            }
        }
        for (stream, key) in unique.releases {
            self.held.entry(stream).or_default().retain(|one| *one != key);
            self.holders.entry((tenant, key)).or_default().next = None;
        }
        for (stream, key) in unique.claims {
            self.held.entry(stream.clone()).or_default().push(key.clone());
            self.holders.entry((tenant, key)).or_default().next = Some(stream);
        }
    }

    /// Whether the commit's key is known from the file, not only from this batch.
    pub(crate) fn is_stored(&self, commit: &Commit) -> bool {
        let key = commit.meta.key.clone();
        key.and_then(|key| self.records.get(&(commit.meta.tenant, key)))
            .is_some_and(|remembered| matches!(remembered, Remembered::Stored(_)))
    }

    /// The streams that moved, with their versions at the end.
    pub(crate) fn moved_versions(&self) -> impl Iterator<Item = (&StreamId, Version)> {
        let versions = self.heads.iter().map(|(stream, head)| (stream, &head.version));
        let moved = versions.filter(|(_, change)| change.stored != change.next);
        moved.map(|(stream, change)| (stream, change.next))
    }

    /// Values whose stored holder lets go of them.
    pub(crate) fn released(&self) -> impl Iterator<Item = (TenantId, &UniqueKey)> {
        let moved = self.holders.iter().filter(|(_, change)| change.stored != change.next);
        moved
            .filter(|(_, change)| change.stored.is_some())
            .map(|((tenant, unique), _)| (*tenant, unique))
    }

    /// Values that have another holder in the end.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = (TenantId, &UniqueKey, &StreamId)> {
        let moved = self.holders.iter().filter(|(_, change)| change.stored != change.next);
        moved.filter_map(|((tenant, unique), change)| {
            change.next.as_ref().map(|holder| (*tenant, unique, holder))
        })
    }
}

impl Ledger for BatchLedger {
    fn record(&self, tenant: TenantId, key: &IdempotencyKey) -> Option<&Record> {
        match self.records.get(&(tenant, key.clone()))? {
            Remembered::Nothing => None,
            Remembered::Stored(record) | Remembered::Soon(record) => Some(record),
        }
    }

    fn version(&self, stream: &StreamId) -> Version {
        self.heads.get(stream).map(|head| head.version.next).unwrap_or_default()
    }

    fn maker(&self, stream: &StreamId) -> Option<CommandId> {
        self.heads.get(stream)?.maker
    }

    fn holder(&self, tenant: TenantId, unique: &UniqueKey) -> Option<&StreamId> {
        self.holders.get(&(tenant, unique.clone()))?.next.as_ref()
    }

    fn held(&self, stream: &StreamId) -> Vec<UniqueKey> {
        self.held.get(stream).cloned().unwrap_or_default()
    }
}
