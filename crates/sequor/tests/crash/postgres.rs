//! The server, and the rounds in which it, its client, or both are killed.

mod audit;

use sequor::postgres::{OpenError, PostgresSettings, PostgresStore, install};
use sequor::{StoreError, TenantId, async_trait};
use sequor_testserver::{Cluster, Database};
use sqlx::{ConnectOptions as _, PgConnection};

use crate::bank::Bank;
use crate::chance::Chance;
use crate::child::{CALLERS, Doubts, Job, PACE, PATIENCE};
use crate::domain::Home;
use crate::retry::Counts;
use crate::working::{Seen, Working};

const BUS: &str = "sequor_crash_bus";

const CREATE: &str = "
    CREATE TABLE sums (tenant_id uuid, account text, cents bigint NOT NULL,
        PRIMARY KEY (tenant_id, account));
    CREATE TABLE moved (tenant_id uuid, account text, cents bigint NOT NULL);
    SELECT sequor.wall('sums');
    SELECT sequor.wall('moved')";

#[async_trait]
impl Home for PostgresStore {
    async fn add(
        connection: &mut PgConnection,
        sql: &'static str,
        (tenant, account, cents): (TenantId, &str, i64),
    ) -> Result<(), sqlx::Error> {
        let row = sqlx::query(sql).bind(*tenant.as_uuid()).bind(account).bind(cents);
        row.execute(connection).await.map(drop)
    }
}

/// Opens the store, once the server is there.
pub(crate) async fn open(url: &str) -> Bank<PostgresStore> {
    let settings: PostgresSettings = url.parse().expect("an address");
    let mut pace = tokio::time::interval(PACE);
    let opening = async {
        loop {
            pace.tick().await;
            match PostgresStore::open(settings.clone()).await {
                Ok(store) => return store,
                Err(OpenError::Store(error)) if is_unavailable(&error) => {}
                Err(error) => panic!("the store does not open: {error:?}"),
            }
        }
    };
    Bank::new(tokio::time::timeout(PATIENCE, opening).await.expect("the server comes back"))
}

fn is_unavailable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(_))
}

/// A server of our own, which writes as in production, and a database for all tests.
pub(crate) struct Ground {
    // Dropped from top to bottom: the database goes before its server.
    database: Database,
    cluster: Cluster,
    /// How many rounds have been: keys are never used again.
    rounds: u64,
}

impl Ground {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::builder().durable().start().expect("a server of our own");
        let database = Database::on(&cluster.url("postgres")).await;
        let owner = PostgresSettings::new(database.owner());
        install(&owner).await.expect("sequor's tables");
        database.make_role(BUS, "sequor_app, sequor_system").await;
        database.run(CREATE).await;
        Self { database, cluster, rounds: 0 }
    }

    fn url(&self) -> String {
        self.database.role(BUS).to_url_lossy().into()
    }

    fn start_again(&mut self) {
        self.cluster.start_again().expect("the server recovers");
    }

    fn stop(&mut self) {
        self.cluster.stop_immediate().expect("the server stops");
    }
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Client,
    Server,
    Both,
}

pub(crate) async fn run(test: &str, chance: &mut Chance, ground: &mut Ground) {
    let victim = match test {
        _ if test.contains("client") => Victim::Client,
        _ if test.contains("server") => Victim::Server,
        _ => Victim::Both,
    };
    let rounds = crate::rounds(50);
    let mut counts = Counts::default();
    for done in 1..=rounds {
        let round = ground.rounds;
        ground.rounds += 1;
        let mut working = Working::start(&Job { place: ground.url(), round });
        working.wait_for(chance.below(120));
        let seen = kill(victim, working, (chance, ground));
        let bank = open(&ground.url()).await;
        counts.retry(&bank, (round, seen)).await;
        if done % 10 == 0 || done == rounds {
            audit::run(bank.store(), &ground.database).await;
        }
        bank.store().close().await;
    }
    tell(victim, rounds, &counts);
}

/// Kills in the midst of work. A client that outlives its server goes on by itself.
fn kill(victim: Victim, mut working: Working, world: (&mut Chance, &mut Ground)) -> Seen {
    let (chance, ground) = world;
    match victim {
        Victim::Client => working.kill(),
        Victim::Server => {
            ground.stop();
            ground.start_again();
            working.wait_for(2 * CALLERS);
            working.finish()
        }
        Victim::Both => {
            let server_first = chance.below(2) == 0;
            let seen = if server_first {
                ground.stop();
                working.kill()
            } else {
                let seen = working.kill();
                ground.stop();
                seen
            };
            ground.start_again();
            seen
        }
    }
}

fn tell(victim: Victim, rounds: u64, counts: &Counts) {
    let Counts { kept, in_doubt, ran_now, doubts: Doubts { unavailable, unknown } } = *counts;
    let whom = match victim {
        Victim::Client => "of the client",
        Victim::Server => "of the server",
        Victim::Both => "of both",
    };
    assert!(victim != Victim::Client || counts.doubts == Doubts::default(), "the server was there");
    println!(
        "{rounds} kills {whom}: {kept} commands acknowledged and kept ({unavailable} times \
         Unavailable and {unknown} times Unknown on the way), {in_doubt} committed but not \
         acknowledged, {ran_now} not there and executed by the retry, none twice"
    );
}
