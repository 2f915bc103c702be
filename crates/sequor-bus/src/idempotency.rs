//! What a service does with a key that is known.

use std::time::Duration;

use sequor_core::Error;

/// What a service does with a key that is known. The default is a silent no-op that names the
/// first command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// What a retry gets. Default [`Mode::NoOp`]; a call can say otherwise.
    pub mode: Mode,
    /// Who may see that a command has been done. Default [`ReplayAccess::SameActor`].
    pub access: ReplayAccess,
    /// What a known key with another request gets. Default [`OnReuse::Refuse`].
    pub on_reuse: OnReuse,
    /// How long a duplicate waits for the first one that runs in this process, before it gets
    /// `InProgress`. Default 5 s, 0 s to 5 min; a waiting duplicate costs memory, but no connection.
    pub wait_max: Duration,
}

impl Default for Idempotency {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            access: ReplayAccess::default(),
            on_reuse: OnReuse::default(),
            wait_max: Duration::from_secs(5),
        }
    }
}

/// What a retry gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// A receipt that says `Replayed` and names the first command, without output.
    #[default]
    NoOp,
    /// The error [`Error::Replay`].
    Strict,
    /// A receipt that says `Replayed`, with the stored output.
    Output,
}

/// Who may see that a command has been done, and what it answered. By the order of the chain a
/// replay answers before authz is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReplayAccess {
    /// The actor of the first command gets the output. Anybody else gets a receipt without output
    /// if authz allows the command now, else `Unauthorized`. Two calls without an actor count as
    /// the same actor.
    #[default]
    SameActor,
    /// Authz is asked on every replay.
    Reauthorize,
    /// Whoever has the key.
    Trust,
}

/// What a known key with another request gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnReuse {
    /// The error [`Error::KeyReused`].
    #[default]
    Refuse,
    /// A silent no-op, as older systems did: the caller is told of a command that it did not ask
    /// for. Only for moving over from such a system.
    NoOp,
}

/// Whether an error says that the command had taken effect before.
#[must_use]
pub fn is_replay<R>(error: &Error<R>) -> bool {
    matches!(error, Error::Replay(_))
}
