//! Accounts that are charged once, whoever retries: the story of sequor, told by a SQLite file
//! or a PostgreSQL database.
//!
//! *For:* seeing what the bus promises, on a real database, and applying commands from
//! a file.
//! *Never:* a web service or a payment: nothing leaves this machine.
//! *Start here:* `domain.rs` for what can be asked, `story.rs` for what comes back.

mod database;
mod domain;
mod money;
mod projection;

mod conflicts;
mod story;

mod apply;
mod show;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use sequor::{IdempotencyKey, Store, TenantId};

use crate::apply::Source;
use crate::conflicts::Conflicts;
use crate::database::{Bank, Database};

/// Charges accounts once, whoever retries
#[derive(Debug, Parser)]
#[command(version, long_about = ABOUT, after_help = EXAMPLES)]
struct Cli {
    /// A SQLite file: sqlite://file.db, sqlite:file.db or a path; or a PostgreSQL database:
    /// postgres://user:password@host:port/database
    #[arg(
        long,
        global = true,
        value_name = "URL",
        default_value = "billing.db",
        verbatim_doc_comment
    )]
    database: Database,

    #[command(subcommand)]
    command: Option<Task>,
}

const ABOUT: &str = "\
Charges accounts once, whoever retries.

Without a command it opens the database and tells a story on it: charges, retries, rivals and
refusals, each line read back from the store. Run it twice: the second run shows that the keys
survived the restart.

The database is a SQLite file, created where it is missing, or one on a PostgreSQL server (15 or
newer), where the first run creates the tables: sequor's own in the schema `sequor`, and `balances`.
Its role must be allowed to create schemas and roles. Later runs may take another role, one that
owns nothing: GRANT sequor_app, sequor_system TO <role>;";

const EXAMPLES: &str = "\
Examples:
  billing                                      tell the story on ./billing.db
  billing --database sqlite:///tmp/b.db        … on another file
  billing --database postgres://postgres:secret@localhost/postgres
                                               … on a server, such as that of compose.yaml
  billing apply commands.jsonl                 apply a file of commands; again: all replayed
  generate | billing apply -                   … from a pipe
  billing balances                             what every account owes
  billing outcome --tenant 018f2f6e-0000-7000-8000-000000000001 order-1001
                                               what became of the command under a key

Exit codes: 0 all went well; 1 nothing could be done; 2 some lines of `apply` did not take effect.";

#[derive(Debug, Subcommand)]
enum Task {
    /// Tell the story (what happens without a command, too)
    Story,
    /// Apply commands from a file, one JSON object a line
    #[command(long_about = apply::ABOUT)]
    Apply {
        /// The file, or - for standard input
        file: Source,
    },
    /// Show what became of the command under a key
    Outcome {
        /// Whose key: a UUID
        #[arg(long)]
        tenant: TenantId,
        /// The key, byte for byte
        key: IdempotencyKey,
    },
    /// Show what every account owes; works while another process has the database, too
    Balances,
}

// One thread is enough: the bus waits for the database most of the time, and a file has threads of
// its own. It also makes the story's race certain (`story/rivals.rs`).
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(cli).await {
        Ok(code) => code,
        // Who reads has read enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "billing: {}", causes(&error)).ok();
            ExitCode::FAILURE
        }
    }
}

/// Prints help where it was asked for, else what is wrong with the command line.
fn usage(error: &clap::Error) -> ExitCode {
    // Nobody is left to tell when even this cannot be printed.
    let _ = error.print();
    if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn run(Cli { database, command }: Cli) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    let task = command.unwrap_or(Task::Story);
    if let Task::Balances = task {
        show::balances(&database, &mut out).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let only_reads = matches!(task, Task::Outcome { .. });
    match &database {
        Database::Sqlite(file) => {
            if only_reads {
                file.expect_there()?;
            }
            let bank = file.open().await?;
            let done = work(&bank, &database, task, &mut out).await;
            bank.store().close().await;
            done
        }
        Database::Postgres(server) => {
            if only_reads {
                server.expect_there().await?;
            }
            let bank = server.open().await?;
            let done = work(&bank, &database, task, &mut out).await;
            bank.store().close().await;
            done
        }
    }
}

/// What is done with a bank, whatever its store.
async fn work<S: Store>(
    bank: &Bank<S>,
    database: &Database,
    task: Task,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    match task {
        Task::Story => {
            let conflicts = Conflicts::listen()?;
            story::tell(bank, database, &conflicts, out).await?;
        }
        Task::Apply { file } => {
            let summary = apply::apply(bank, &file).await?;
            writeln!(out, "{file}: {summary}")?;
            return Ok(if summary.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(2) });
        }
        Task::Outcome { tenant, key } => show::outcome(bank, tenant, &key, out).await?,
        Task::Balances => show::balances(database, out).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// An error and its causes. Some say what caused them themselves; that is not said again.
fn causes(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |said, cause| match cause.to_string() {
        cause if said.is_empty() => cause,
        cause if said.contains(&cause) => said,
        cause => format!("{said}: {cause}"),
    })
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(broken))
}
