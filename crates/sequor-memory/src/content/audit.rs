//! What must hold between the maps, compared one with the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sequor_core::audit::{AuditCounts, AuditReport, Finding};
use sequor_core::{
    CommandId, IdempotencyKey, Partition, Position, Record, StoredEvent, StreamId, TenantId,
    Version,
};

use super::Content;

/// What a command has made, as its events tell.
#[derive(Default)]
struct Made<'c> {
    position: Option<Position>,
    versions: BTreeMap<&'c StreamId, Version>,
    key: Option<&'c IdempotencyKey>,
}

/// Commands, by tenant and id.
type Commands<'c> = BTreeMap<(TenantId, CommandId), Made<'c>>;

impl Content {
    /// Compares everything with everything else.
    pub(crate) fn audit(&self, findings_max: usize) -> AuditReport {
        let commands = self.commands();
        let mut report = AuditReport::of(self.counts(&commands));
        let mut add = |findings: Vec<Finding>| {
            let total = u64::try_from(findings.len()).unwrap_or(u64::MAX);
            report.add(findings.into_iter().take(findings_max), total);
        };
        add(self.positions());
        add(self.versions());
        add(self.last_versions());
        add(self.records_without_events(&commands));
        add(self.lost_keys(&commands));
        add(self.holders_against_held());
        add(self.checkpoints.audit(&self.log));
        report
    }

    fn commands(&self) -> Commands<'_> {
        let mut commands = Commands::new();
        for event in &self.log {
            let id = (event.stream.tenant, event.meta.command_id);
            let made = commands.entry(id).or_default();
            made.position = made.position.max(Some(event.position));
            let version = made.versions.entry(&event.stream).or_default();
            *version = event.version.max(*version);
            made.key = event.meta.key.as_ref();
        }
        commands
    }

    fn counts(&self, commands: &Commands<'_>) -> AuditCounts {
        let count = |many: usize| u64::try_from(many).unwrap_or(u64::MAX);
        let known = self.records.iter().map(|((tenant, _), record)| (*tenant, record.command_id));
        let known: BTreeSet<_> = known.chain(commands.keys().copied()).collect();
        let mut counts = AuditCounts::default();
        counts.commands = count(known.len());
        counts.events = count(self.log.len());
        counts.streams = count(self.streams.values().filter(|one| !one.events.is_empty()).count());
        counts.keys = count(self.records.len());
        counts.unique_values = count(self.holders.len());
        counts
    }

    /// Positions grow along the log, and none is above what was drawn.
    fn positions(&self) -> Vec<Finding> {
        let pairs = self.log.iter().zip(self.log.iter().skip(1));
        let twice = pairs.filter(|(one, next)| one.position == next.position);
        let mut findings: Vec<_> = twice
            .map(|(one, _)| Finding::PositionTwice {
                partition: Partition::ONLY,
                position: one.position,
                events: 2,
            })
            .collect();
        let highest = self.log.iter().map(|event| event.position).max().unwrap_or(Position::START);
        let drawn = Position::new(self.drawn);
        if drawn < highest {
            findings.push(Finding::PositionsBehind { drawn, highest });
        }
        findings
    }

    /// The versions of a stream are 1, 2, 3 …, and positions grow with them.
    fn versions(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (stream, content) in &self.streams {
            let mut before: Option<&StoredEvent> = None;
            for event in &content.events {
                findings.extend(follows(stream, before, event));
                before = Some(event);
            }
        }
        findings
    }

    /// A stream ends where the log says that it does.
    fn last_versions(&self) -> Vec<Finding> {
        let mut last: HashMap<&StreamId, Version> = HashMap::new();
        for event in &self.log {
            let version = last.entry(&event.stream).or_default();
            *version = event.version.max(*version);
        }
        let stored = |stream: &StreamId| {
            let event = self.streams.get(stream)?.events.last()?;
            Some(event.version)
        };
        let streams: BTreeSet<_> = self.streams.keys().chain(last.keys().copied()).collect();
        let differs = |stream: &StreamId| {
            let (stored, last) = (stored(stream), last.get(stream).copied());
            let stream = stream.clone();
            (stored != last).then_some(Finding::StreamVersion { stream, stored, last })
        };
        streams.into_iter().filter_map(differs).collect()
    }

    /// A record says what its command's events say.
    fn records_without_events(&self, commands: &Commands<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for ((tenant, _), record) in &self.records {
            let made = commands.get(&(*tenant, record.command_id));
            let (tenant, command) = (*tenant, record.command_id);
            let last = made.and_then(|made| made.position);
            if record.position != last {
                let stored = record.position;
                findings.push(Finding::CommandPosition { tenant, command, stored, last });
            }
            findings.extend(self.remembered_streams(record, made));
        }
        findings
    }

    fn remembered_streams(&self, record: &Record, made: Option<&Made<'_>>) -> Vec<Finding> {
        let nothing = BTreeMap::new();
        let made = made.map_or(&nothing, |made| &made.versions);
        let mut findings = Vec::new();
        let mut differs = |stream: &StreamId, stored, actual| {
            let (command, stream) = (record.command_id, stream.clone());
            findings.push(Finding::CommandStream { command, stream, stored, actual });
        };
        for one in &record.streams {
            let ever = self.streams.get(&one.stream).and_then(|found| found.events.last());
            let ever = ever.map_or(Version::NONE, |event| event.version);
            match made.get(&one.stream) {
                Some(actual) if *actual != one.version => {
                    differs(&one.stream, Some(one.version), *actual);
                }
                None if one.version > ever => differs(&one.stream, Some(one.version), ever),
                Some(_) | None => {}
            }
        }
        for (stream, actual) in made {
            if record.streams.iter().all(|one| one.stream != **stream) {
                differs(stream, None, *actual);
            }
        }
        findings
    }

    /// Each command with a key is remembered under it.
    fn lost_keys(&self, commands: &Commands<'_>) -> Vec<Finding> {
        let lost = |(id, made): (&(TenantId, CommandId), &Made<'_>)| {
            let ((tenant, command), key) = (*id, made.key?.clone());
            let record = self.records.get(&(tenant, key.clone()));
            let is_lost = record.is_none_or(|record| record.command_id != command);
            let key = key.as_str().to_owned();
            is_lost.then_some(Finding::CommandWithoutKey { tenant, key, command })
        };
        commands.iter().filter_map(lost).collect()
    }

    /// Values and their holders agree, and an aggregate holds one in a scope.
    fn holders_against_held(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut differs = |holder: &StreamId, (scope, value): (_, &str)| {
            let (holder, value) = (holder.clone(), value.to_owned());
            findings.push(Finding::HolderDiffers { holder, scope, value });
        };
        for ((_, unique), holder) in &self.holders {
            let held = self.streams.get(holder).map(|stream| &stream.held);
            if held.is_none_or(|held| !held.contains(unique)) {
                differs(holder, (unique.scope.clone(), &unique.value));
            }
        }
        for (stream, content) in &self.streams {
            for unique in &content.held {
                if self.holders.get(&(stream.tenant, unique.clone())) != Some(stream) {
                    differs(stream, (unique.scope.clone(), &unique.value));
                }
            }
        }
        findings.extend(self.several_in_a_scope());
        findings
    }

    fn several_in_a_scope(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (stream, content) in &self.streams {
            let mut scopes = BTreeMap::new();
            for unique in &content.held {
                *scopes.entry(&unique.scope).or_insert(0_u64) += 1;
            }
            let several = scopes.into_iter().filter(|(_, values)| *values > 1);
            findings.extend(several.map(|(scope, values)| Finding::HoldsSeveral {
                holder: stream.clone(),
                scope: scope.clone(),
                values,
            }));
        }
        findings
    }
}

/// What is wrong with an event behind the one before it in its stream.
fn follows(stream: &StreamId, before: Option<&StoredEvent>, event: &StoredEvent) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (version, position) = (event.version, event.position);
    let last = before.map_or(Version::NONE, |before| before.version);
    let stream = || stream.clone();
    if version == last {
        findings.push(Finding::VersionTwice { stream: stream(), version });
    } else if version != last.next() {
        let to = Version::new(version.get().saturating_sub(1));
        findings.push(Finding::VersionsMissing { stream: stream(), from: last.next(), to });
    }
    if let Some(before) = before.map(|before| before.position)
        && position <= before
    {
        findings.push(Finding::OutOfOrder { stream: stream(), version, position, before });
    }
    findings
}

#[cfg(test)]
mod tests;
