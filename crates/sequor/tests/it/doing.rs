//! Handlers from closures, and the commands that they handle.

use std::future::Future;
use std::pin::Pin;

use sequor::ports::Store;
use sequor::{Command, Error, Handler, Repo, async_trait};
use serde::{Deserialize, Serialize};

use crate::bank::Refused;

/// A command for a handler: whatever the handler makes of it.
#[derive(Clone, Debug, Command, Serialize, Deserialize)]
#[command(name = "bank.run", output = i64, rejection = Refused)]
pub(crate) struct Run {
    pub(crate) accounts: Vec<String>,
    pub(crate) cents: i64,
}

/// A second command, for handlers that issue one.
#[derive(Clone, Debug, Command, Serialize, Deserialize)]
#[command(name = "bank.follow", rejection = Refused)]
pub(crate) struct Follow {
    pub(crate) number: u32,
}

pub(crate) fn run(accounts: &[&str], cents: i64) -> Run {
    Run { accounts: accounts.iter().map(ToString::to_string).collect(), cents }
}

/// What a handler's closure returns.
pub(crate) type Handling<'a, C> = Pin<
    Box<
        dyn Future<Output = Result<<C as Command>::Output, Error<<C as Command>::Rejection>>>
            + Send
            + 'a,
    >,
>;

/// A handler from a closure.
pub(crate) struct Doing<F>(F);

pub(crate) fn doing<C, S, F>(handle: F) -> Doing<F>
where
    C: Command,
    S: Store,
    F: for<'a> Fn(&'a C, &'a mut Repo<S>) -> Handling<'a, C> + Send + Sync + 'static,
{
    Doing(handle)
}

#[async_trait]
impl<C, S, F> Handler<C, S> for Doing<F>
where
    C: Command,
    S: Store,
    F: for<'a> Fn(&'a C, &'a mut Repo<S>) -> Handling<'a, C> + Send + Sync + 'static,
{
    async fn handle(
        &self,
        command: &C,
        repo: &mut Repo<S>,
    ) -> Result<C::Output, Error<C::Rejection>> {
        (self.0)(command, repo).await
    }
}
