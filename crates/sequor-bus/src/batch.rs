//! Several commands for one transaction.

use std::fmt;
use std::sync::Arc;

use sequor_core::{Command, Invalid, Limits, Meta};

use crate::envelope::{AnyCommand, Envelope, Options};

/// Several commands for [`execute_all`](crate::CommandService::execute_all), in order, all of one
/// tenant.
#[derive(Default)]
#[must_use = "a batch does nothing until it is executed"]
pub struct Batch {
    commands: Vec<(Arc<dyn AnyCommand>, Meta, Options)>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a command.
    pub fn then<C: Command>(self, command: C, meta: Meta) -> Self {
        self.then_with(command, meta, Options::default())
    }

    /// Adds a command with options of its own.
    pub fn then_with<C: Command>(mut self, command: C, meta: Meta, options: Options) -> Self {
        self.commands.push((Arc::new(command), meta, options));
        self
    }

    /// Takes the commands in: their number, their JSON and the tenants that are known already are
    /// checked here.
    pub(crate) fn seal(
        self,
        commands_max: usize,
        limits: &Limits,
    ) -> Result<Vec<Envelope>, Invalid> {
        let count = self.commands.len();
        if count > commands_max {
            return Err(Invalid::TooMany { what: "commands", count, max: commands_max });
        }
        let envelopes = self
            .commands
            .into_iter()
            .map(|(command, meta, options)| Envelope::seal(command, meta, options, limits))
            .map(|envelope| envelope.map(Envelope::shared))
            .collect::<Result<Vec<_>, _>>()?;
        let mut tenants = envelopes.iter().filter_map(|envelope| envelope.meta.tenant);
        let first = tenants.next();
        if tenants.any(|tenant| Some(tenant) != first) {
            return Err(Invalid::TenantsDiffer);
        }
        Ok(envelopes)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.commands.iter().map(|(command, meta, _)| (command.name(), meta));
        f.debug_list().entries(names).finish()
    }
}
