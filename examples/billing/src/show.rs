//! What is read back from the database, for people.

use std::io::Write;

use anyhow::{Context, bail};
use sequor::{IdempotencyKey, Record, RecordState, Store, TenantId};

use crate::database::{Bank, Database};
use crate::projection::{Balance, read_balances};

/// Shows what became of the command under a key.
pub(crate) async fn outcome<S: Store>(
    bank: &Bank<S>,
    tenant: TenantId,
    key: &IdempotencyKey,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let Some(record) = bank.outcome(tenant, key).await? else {
        bail!("nothing has taken effect under key {key} for tenant {tenant}");
    };
    write_record(&record, out)
}

/// Shows a record, line by line.
pub(crate) fn write_record(record: &Record, out: &mut impl Write) -> anyhow::Result<()> {
    let Record { command_id, command_name, recorded_at, output, .. } = record;
    writeln!(out, "    command   {command_name} {command_id}")?;
    writeln!(out, "    recorded  {recorded_at}")?;
    if let Some(actor) = &record.actor {
        writeln!(out, "    actor     {}", actor.as_str())?;
    }
    for written in &record.streams {
        writeln!(out, "    wrote     {} v{}", written.stream, written.version)?;
    }
    if let Some(position) = record.position {
        writeln!(out, "    position  {position}")?;
    }
    if record.state == RecordState::Completed {
        writeln!(out, "    output    {output}")?;
    }
    Ok(())
}

/// Shows what every account owes.
pub(crate) async fn balances(database: &Database, out: &mut impl Write) -> anyhow::Result<()> {
    let mut reader = database.read().await?;
    write_heading(out)?;
    read_balances(&mut reader, |balance| write_balance(&balance, out)).await.with_context(|| {
        let noun = database.noun();
        format!("{database} has no balances to read; is it a {noun} of `billing`?")
    })
}

/// The heading of a table of balances.
pub(crate) fn write_heading(out: &mut impl Write) -> anyhow::Result<()> {
    let columns = ("tenant", "account", "owes", "limit", "charges", "version");
    let (tenant, account, owes, limit, charges, version) = columns;
    writeln!(
        out,
        "    {tenant:<36}  {account:<14} {owes:>11} {limit:>11} {charges:>8} {version:>7}"
    )?;
    Ok(())
}

/// A line of that table.
pub(crate) fn write_balance(row: &Balance, out: &mut impl Write) -> anyhow::Result<()> {
    let Balance { tenant, account, balance, limit, charges, version, .. } = row;
    writeln!(
        out,
        "    {tenant:<36}  {account:<14} {balance:>11} {limit:>11} {charges:>8} {version:>7}"
    )?;
    Ok(())
}
