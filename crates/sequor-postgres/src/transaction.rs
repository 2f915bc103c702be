//! A transaction that stays open while a handler works in it.
//!
//! It runs as `sequor_app` and speaks for one tenant, so that user SQL sees that tenant only.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use sequor_core::ports::{History, HistoryRequest, Transact, Transaction};
use sequor_core::{
    CommandId, Commit, IdempotencyKey, Invalid, Projections, Record, StoreError, StreamId, TenantId,
};
use sqlx::postgres::PgTransactionManager;
use sqlx::{AssertSqlSafe, PgConnection, SqlSafeStr};
use sqlx_core::transaction::TransactionManager;

use crate::commit::batch::{Call, Failure, call_commit, project_one};
use crate::commit::check;
use crate::commit::verdicts::Judged;
use crate::connection::Session;
use crate::error::{commit_error, corrupt, is_damaged, store_error, user_error};
use crate::history::read_history;
use crate::partitions::PartitionLock;
use crate::pool::Loan;
use crate::row;
use crate::statement::{Protocol, answered};
use crate::store::PostgresStore;

pub(crate) const CLAIM: &str = include_str!("sql/claim.sql");
const CHECK_OPEN: &str = include_str!("sql/check_open.sql");

/// How long a stream is waited for that comes before one that is held already. Whoever waits in the
/// order of streams cannot wait in a circle; whoever does not waits for less than it takes the server
/// to look for one, and starts again. Otherwise the server would end one of them, which is as often
/// the one that keeps to the order.
const OUT_OF_ORDER_WAIT: Duration = Duration::from_millis(100);

#[async_trait]
impl Transact for PostgresStore {
    type Connection = PgConnection;
    type Transaction = PostgresTransaction;

    async fn begin(&self, tenant: TenantId) -> Result<PostgresTransaction, StoreError> {
        let mut loan = self.pool().lend().await?;
        let begun = begin(loan.session(), Some(tenant)).await;
        if let Err(error) = &begun {
            loan.give_back(&begun);
            return Err(error.clone());
        }
        Ok(PostgresTransaction {
            store: self.clone(),
            tenant,
            lock: self.partitions().lock_of(tenant),
            loan: Some(loan),
            claimed: HashSet::new(),
            records: Vec::new(),
            failure: None,
            written: None,
            held: BTreeSet::new(),
            is_damaged: AtomicBool::new(false),
            is_sure: true,
        })
    }
}

/// An open transaction. Dropping it rolls back.
#[derive(Debug)]
pub struct PostgresTransaction {
    store: PostgresStore,
    tenant: TenantId,
    lock: PartitionLock,
    /// There until the transaction ends.
    loan: Option<Loan>,
    /// Keys that were claimed and under which nothing was written yet.
    claimed: HashSet<IdempotencyKey>,
    records: Vec<Record>,
    /// Why nothing of it may become true any more.
    failure: Option<StoreError>,
    /// The command that was written last.
    written: Option<CommandId>,
    /// Streams that were held or written.
    held: BTreeSet<StreamId>,
    /// Whether an error was met after which the session may be of no use.
    is_damaged: AtomicBool,
    /// Whether the last statement was ours, and so the transaction is known to be whole.
    is_sure: bool,
}

impl PostgresTransaction {
    fn session(&mut self) -> Result<&mut Session, StoreError> {
        let loan = self.loan.as_mut().ok_or_else(|| corrupt("the transaction has ended"))?;
        Ok(loan.session())
    }

    fn check_tenant(&self, tenant: TenantId) -> Result<(), StoreError> {
        if tenant == self.tenant { Ok(()) } else { Err(Invalid::TenantsDiffer.into()) }
    }

    /// How long these streams may be waited for. They are held afterwards, or nothing is.
    fn wait_for<'s>(&mut self, streams: impl Iterator<Item = &'s StreamId> + Clone) -> Duration {
        let last = self.held.last();
        let is_late = |stream: &StreamId| Some(stream) < last && !self.held.contains(stream);
        let in_order = !streams.clone().any(is_late);
        self.held.extend(streams.cloned());
        if in_order { self.store.lock_wait_max() } else { OUT_OF_ORDER_WAIT }
    }

    /// Notes when the session may be of no use any more.
    fn noted<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let is_damaged = matches!(result, Err(StoreError::Unavailable(_) | StoreError::Unknown));
        self.is_damaged.fetch_or(is_damaged, Ordering::Relaxed);
        result
    }

    async fn judge_and_write(
        &mut self,
        commit: &Commit,
        projections: &Projections<PgConnection>,
    ) -> Result<Record, StoreError> {
        check(commit)?;
        self.check_tenant(commit.meta.tenant)?;
        let is_claimed = commit.meta.key.as_ref().is_some_and(|key| self.claimed.remove(key));
        let wait = self.wait_for(commit.streams.iter().map(|write| &write.stream));
        let speaks_for = Some(self.tenant);
        let call = Call { wait, speaks_for, written: self.written, is_claimed };
        let commits = [(commit, self.lock)];
        let judged = call_commit(&commits, call, self.session()?).await;
        if let Err(Failure::Statement(error)) = &judged {
            self.store.deadlocks().note(error);
        }
        let judged = judged.map_err(Failure::within_transaction)?.into_iter().next();
        let positions = match judged {
            Some(Judged::Fresh(positions)) => positions,
            Some(Judged::Refused(error)) => return Err(error),
            Some(Judged::Blocked | Judged::Untried) | None => return Err(StoreError::Busy),
            Some(Judged::Known(_)) => {
                return Err(corrupt("a command was written whose key is known: claim it first"));
            }
        };
        self.written = Some(commit.meta.command_id);
        self.is_sure = projections.0.is_empty();
        project_one(commit, &positions, projections, self.session()?).await?;
        Ok(commit.record(positions.last().copied()))
    }

    /// Makes sure that the transaction is still ours, and lets go of what was claimed in vain.
    async fn settle(&mut self) -> Result<(), StoreError> {
        let tenant = self.tenant;
        for key in std::mem::take(&mut self.claimed) {
            let session = self.session()?;
            let unclaim = session.statement(include_str!("sql/unclaim.sql"));
            let unclaim = unclaim.bind(tenant.as_uuid()).bind(key.as_str());
            let done = unclaim.execute(&mut session.postgres).await;
            done.map_err(|error| session.failed(error))?;
        }
        let (is_sure, written) = (self.is_sure, self.written);
        let session = self.session()?;
        match session.protocol {
            Protocol::Prepared if !is_sure => check_open(session, tenant, written).await,
            Protocol::Simple if session.was_shared => leave_clean(session, tenant, written).await,
            Protocol::Prepared | Protocol::Simple => Ok(()),
        }
    }
}

#[async_trait]
impl Transaction for PostgresTransaction {
    type Connection = PgConnection;

    async fn claim(
        &mut self,
        tenant: TenantId,
        key: &IdempotencyKey,
    ) -> Result<Option<Record>, StoreError> {
        self.check_tenant(tenant)?;
        if self.claimed.contains(key) {
            return Ok(None);
        }
        let wait = i32::try_from(self.store.lock_wait_max().as_millis()).unwrap_or(i32::MAX);
        let session = self.session()?;
        let claim = session.statement(CLAIM).bind(wait).bind(tenant.as_uuid()).bind(key.as_str());
        let row = claim.fetch_optional(&mut session.postgres).await;
        let row = row.map_err(|error| session.failed(error));
        match self.noted(row)? {
            Some(row) => row::record(&row, tenant).map(Some),
            None => {
                self.claimed.insert(key.clone());
                Ok(None)
            }
        }
    }

    async fn hold(&mut self, stream: &StreamId) -> Result<(), StoreError> {
        self.check_tenant(stream.tenant)?;
        let wait = self.wait_for(std::iter::once(stream));
        let wait = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        let session = self.session()?;
        let hold = session
            .statement(include_str!("sql/hold.sql"))
            .bind(wait)
            .bind(*stream.tenant.as_uuid())
            .bind(stream.aggregate.as_str())
            .bind(stream.id.as_str());
        let held = hold.execute(&mut session.postgres).await;
        let held = held.map_err(|error| session.failed(error));
        self.noted(held)
    }

    async fn history(&mut self, request: HistoryRequest<'_>) -> Result<History, StoreError> {
        self.check_tenant(request.tenant)?;
        let history = read_history(self.session()?, request).await;
        self.noted(history)
    }

    fn connection(&mut self) -> &mut PgConnection {
        self.is_sure = false;
        // Invariant: only `commit` takes the loan away, and it takes the transaction with it.
        let session = self.loan.as_mut().expect("an open transaction has its session").session();
        session.was_shared = true;
        &mut session.postgres
    }

    fn own_rows_failed(&self, error: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
        self.is_damaged.fetch_or(is_damaged(&*error), Ordering::Relaxed);
        if let Some(error) = error.downcast_ref() {
            self.store.deadlocks().note(error);
        }
        user_error("a handler's own rows", error)
    }

    async fn write(
        &mut self,
        commit: Commit,
        projections: &Projections<PgConnection>,
    ) -> Result<(), StoreError> {
        // Set first, so that a future that is dropped half-way leaves a transaction that cannot
        // become true.
        let unfinished = corrupt("a write was given up half-way; the transaction cannot commit");
        if let Some(failure) = self.failure.replace(unfinished) {
            self.failure = Some(failure.clone());
            return Err(failure);
        }
        let written = self.judge_and_write(&commit, projections).await;
        self.failure = written.as_ref().err().cloned();
        self.records.push(self.noted(written)?);
        Ok(())
    }

    async fn commit(mut self) -> Result<Vec<Record>, StoreError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        // A task of its own, so that a caller who gives up waiting does not halve it.
        let committing = tokio::spawn(async move {
            self.settle().await?;
            let mut loan = self.loan.take().ok_or_else(|| corrupt("the transaction has ended"))?;
            let committed = commit(loan.session()).await;
            tokio::spawn(clean_up(loan, committed.clone()));
            committed?;
            let position = self.records.iter().filter_map(|record| record.position).max();
            self.store.announce(self.lock.partition, position);
            Ok(std::mem::take(&mut self.records))
        });
        committing.await.unwrap_or(Err(StoreError::Unknown))
    }
}

impl Drop for PostgresTransaction {
    fn drop(&mut self) {
        // The server rolls back when the session is gone.
        if let Some(loan) = self.loan.take().filter(|_| !self.is_damaged.load(Ordering::Relaxed)) {
            undo(loan);
        }
    }
}

/// Rolls back behind everybody's back, and gives the session back.
pub(crate) fn undo(mut loan: Loan) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        let undone = rollback(loan.session()).await;
        clean_up(loan, undone).await;
    });
}

/// Begins: for a tenant, as nobody but `sequor_app`; or as the bus, until [`speak_for`] says for whom.
pub(crate) async fn begin(
    session: &mut Session,
    tenant: Option<TenantId>,
) -> Result<(), StoreError> {
    let mut sql = include_str!("sql/begin.sql").to_owned();
    if let Some(tenant) = tenant {
        sql.push_str(include_str!("sql/take_role.sql"));
        let take = include_str!("sql/take_tenant.sql");
        sql.push_str(&take.replace("{tenant}", &tenant.as_uuid().to_string()));
    }
    // Nothing in it comes from outside but a UUID, printed by us.
    let begin = AssertSqlSafe(sql).into_sql_str();
    let begun = PgTransactionManager::begin(&mut session.postgres, Some(begin));
    answered(session.limit, begun).await.map_err(store_error)
}

/// From here on the transaction runs as user SQL does, and speaks for this tenant.
pub(crate) async fn speak_for(session: &mut Session, tenant: TenantId) -> Result<(), StoreError> {
    let take = session.statement(include_str!("sql/speak_for.sql"));
    let take = take.bind(tenant.as_uuid().to_string());
    take.execute(&mut session.postgres).await.map_err(store_error)
}

/// What was put off until COMMIT runs now, while the transaction speaks for whom it is about; what
/// comes next may be put off again.
pub(crate) async fn fire_triggers(session: &mut Session) -> Result<(), StoreError> {
    const FIRE: &str =
        concat!(include_str!("sql/fire_triggers.sql"), include_str!("sql/defer_triggers.sql"));
    reset(session, FIRE).await
}

/// Makes sure that user code has neither ended the transaction, nor undone what was written last, nor
/// changed its role or tenant, and that no error was swallowed: the server would answer COMMIT with a
/// ROLLBACK, and the driver with success.
pub(crate) async fn check_open(
    session: &mut Session,
    tenant: TenantId,
    written: Option<CommandId>,
) -> Result<(), StoreError> {
    let check = session.statement(CHECK_OPEN).bind(tenant.as_uuid());
    let check = check.bind(written.map(|command| command.0));
    check.execute(&mut session.postgres).await.map_err(store_error)
}

/// Behind a pooler: [`check_open`], and takes out of the session what user code may have left in it,
/// while it is ours: after COMMIT it may be anybody's. What was put off until COMMIT runs before that,
/// as from here on the transaction speaks for nobody.
pub(crate) async fn leave_clean(
    session: &mut Session,
    tenant: TenantId,
    written: Option<CommandId>,
) -> Result<(), StoreError> {
    let check = concat!(include_str!("sql/fire_triggers.sql"), include_str!("sql/check_open.sql"));
    let reset = session.statement(RESET_POOLED).after(check).bind(tenant.as_uuid());
    let reset = reset.bind(written.map(|command| command.0));
    let done = reset.execute(&mut session.postgres).await;
    done.map_err(|error| session.failed(error))
}

/// Makes it true. Invariant: the statement before was ours and has succeeded, so the server does
/// not turn this into a ROLLBACK.
pub(crate) async fn commit(session: &mut Session) -> Result<(), StoreError> {
    if PgTransactionManager::get_transaction_depth(&session.postgres) != 1 {
        return Err(corrupt("a savepoint was left open at commit; nothing was written"));
    }
    let committed = PgTransactionManager::commit(&mut session.postgres);
    answered(session.limit, committed).await.map_err(|error| {
        session.deadlocks.note(&error);
        commit_error(error)
    })
}

/// Undoes it.
pub(crate) async fn rollback(session: &mut Session) -> Result<(), StoreError> {
    let is_left_behind = session.was_shared && session.protocol == Protocol::Simple;
    loop {
        let depth = PgTransactionManager::get_transaction_depth(&session.postgres);
        if depth == 1 && is_left_behind {
            // What follows is then for the driver's own count only.
            reset(session, UNDO_POOLED).await?;
        }
        if depth == 0 {
            return Ok(());
        }
        let undone = PgTransactionManager::rollback(&mut session.postgres);
        answered(session.limit, undone).await.map_err(StoreError::unavailable)?;
    }
}

/// Gives the session back, behind everybody's back: without what user code may have left in it.
pub(crate) async fn clean_up(mut loan: Loan, ended: Result<(), StoreError>) {
    if ended.is_err() {
        // It may be open still; the next user must not find it so.
        loan.give_back(&Err::<(), _>(StoreError::Unknown));
        return;
    }
    let cleaned = clean(loan.session()).await;
    loan.give_back(&cleaned);
}

/// Takes out of a session what user code may have left in it. Behind a pooler that was done before
/// the commit.
pub(crate) async fn clean(session: &mut Session) -> Result<(), StoreError> {
    let was_shared = std::mem::take(&mut session.was_shared);
    match session.protocol {
        Protocol::Prepared if was_shared => reset(session, RESET).await,
        Protocol::Prepared | Protocol::Simple => Ok(()),
    }
}

pub(crate) async fn reset(session: &mut Session, sql: &'static str) -> Result<(), StoreError> {
    let done = sqlx::raw_sql(sql).execute(&mut session.postgres);
    answered(session.limit, done).await.map(drop).map_err(store_error)
}

/// A macro, since `concat!` takes literals only.
macro_rules! reset {
    () => {
        concat!(
            include_str!("sql/reset_cursors.sql"),
            include_str!("sql/reset_role.sql"),
            include_str!("sql/reset_settings.sql"),
            include_str!("sql/reset_channels.sql"),
            include_str!("sql/reset_locks.sql"),
            include_str!("sql/reset_tables.sql"),
        )
    };
}

/// Everything of a session that outlives a transaction, but for our prepared statements.
const RESET: &str = reset!();

/// The same in one transaction. A pooler takes what a session says of itself for its client's wish,
/// hence the last one.
pub(crate) const RESET_POOLED: &str = concat!(reset!(), include_str!("sql/take_formats.sql"));

/// A rollback undoes all of that but locks; in one message, hence in one session.
const UNDO_POOLED: &str =
    concat!(include_str!("sql/rollback.sql"), include_str!("sql/reset_locks.sql"));
