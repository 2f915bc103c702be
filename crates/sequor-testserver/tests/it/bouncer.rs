//! PgBouncer pools transactions, so tests can show what does not survive that.

use sequor_testserver::{PgBouncer, install_pgbouncer, server};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection as _, PgConnection};

async fn backend(connection: &mut PgConnection) -> i32 {
    let query = sqlx::query_scalar("SELECT pg_backend_pid()").persistent(false);
    query.fetch_one(connection).await.unwrap()
}

async fn connect(bouncer: &PgBouncer) -> PgConnection {
    let options: PgConnectOptions = bouncer.url("postgres").parse().unwrap();
    let options = options.statement_cache_capacity(0);
    PgConnection::connect_with(&options).await.unwrap()
}

#[tokio::test]
async fn two_sessions_share_a_connection_between_transactions_only() {
    if let Err(missing) = install_pgbouncer() {
        println!("skipped: {missing}");
        return;
    }
    let bouncer = PgBouncer::start(&server::url()).unwrap();
    let (mut one, mut two) = (connect(&bouncer).await, connect(&bouncer).await);
    assert_eq!(backend(&mut one).await, backend(&mut two).await);
    let mut transaction = one.begin().await.unwrap();
    assert_ne!(backend(&mut transaction).await, backend(&mut two).await);
    transaction.commit().await.unwrap();
}
