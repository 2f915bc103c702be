use sequor_testserver::Database;
use sqlx::ConnectOptions as _;

use crate::program::{Folder, without_places};

const BUS: &str = "billing_test_bus";

#[test]
fn the_first_run_executes() {
    let folder = Folder::new();
    let first = folder.run(&[]);
    assert_eq!((first.code, first.error.as_str()), (Some(0), ""));
    insta::assert_snapshot!(first.out, @r#"
    billing.db: first run on this file
    Two tenants, North and South. Each answer names the command that took effect (the end of its
    id), the account's version after it, its position in the store, and its output.

     1. North opens account acme, limit 500.00, key open-acme
        Executed   …<id>  account/acme v1  position 2

     2. North charges 120.00 to acme, key order-1001
        Executed   …<id>  account/acme v2  position 3  {"balance_cents":12000,"charge":1}

     3. The answer got lost: North retries with the same key
        Replayed   …<id>  account/acme v2  position 3

     4. A strict retry, for a caller who must know
        ErrReplay  …<id>  this `charge` took effect at <time>

     5. The same key with another amount, 125.00
        KeyReused  …<id>  the key names this `charge`; it stays as it is

     6. South has an acme too, and uses the same keys: they are its own
        Executed   …<id>  account/acme v1  position 4
        Executed   …<id>  account/acme v2  position 5  {"balance_cents":12000,"charge":1}

     7. 50 callers at once: North charges 80.00, key order-1002, and wants the output
        Executed   …<id>  account/acme v3  position 6  {"balance_cents":20000,"charge":2}
        1 Executed, 49 Replayed; the same command, version, position and output in all: yes

     8. North opens account run-1 for this run, limit 100.00
        Executed   …<id>  account/run-1 v1  position 7

     9. Two charges of 30.00 race for it: the second is decided on what the first one makes
        Executed   …<id>  account/run-1 v2  position 8  {"balance_cents":3000,"charge":1}
        Executed   …<id>  account/run-1 v3  position 9  {"balance_cents":6000,"charge":2}
        conflicts that the bus met on the way: 0

    10. A third charge insists on v1, which its caller saw: no retry
        Conflict   account/run-1 is at v3, not v1

    11. North charges 50.00 to run-1, key late-run-1
        Rejected   50.00 is over the limit: 40.00 of 100.00 are left

    12. A refund of 30.00 makes room
        Executed   …<id>  account/run-1 v4  position 10  {"balance_cents":3000}

    13. The refused charge again, same key: a refusal leaves no record
        Executed   …<id>  account/run-1 v5  position 11  {"balance_cents":8000,"charge":3}

    14. The balances, kept by the same transactions, read with SQL
        tenant                                account               owes       limit  charges version
        018f2f6e-0000-7000-8000-000000000001  acme                200.00      500.00        2       3
        018f2f6e-0000-7000-8000-000000000001  run-1                80.00      100.00        3       5
        018f2f6e-0000-7000-8000-000000000002  acme                120.00      500.00        1       2

    15. The outcome by key: what became of North's order-1001
        command   charge <command id>
        recorded  <time>
        wrote     account/acme v2
        position  3
        output    {"balance_cents":12000,"charge":1}

    Run it again: the keys survive in the file.
    "#);
}

#[test]
fn the_second_run_finds_the_keys_of_the_first() {
    let folder = Folder::new();
    assert_eq!(folder.run(&[]).code, Some(0));
    let second = folder.run(&["story"]);
    assert_eq!((second.code, second.error.as_str()), (Some(0), ""));
    insta::assert_snapshot!(second.out, @r#"
    billing.db: run 2 on this file; keys of earlier runs are still known
    Two tenants, North and South. Each answer names the command that took effect (the end of its
    id), the account's version after it, its position in the store, and its output.

     1. North opens account acme, limit 500.00, key open-acme
        Replayed   …<id>  account/acme v1  position 2
                   known since an earlier run: <time>

     2. North charges 120.00 to acme, key order-1001
        Replayed   …<id>  account/acme v2  position 3
                   known since an earlier run: <time>

     3. The answer got lost: North retries with the same key
        Replayed   …<id>  account/acme v2  position 3
                   known since an earlier run: <time>

     4. A strict retry, for a caller who must know
        ErrReplay  …<id>  this `charge` took effect at <time>

     5. The same key with another amount, 125.00
        KeyReused  …<id>  the key names this `charge`; it stays as it is

     6. South has an acme too, and uses the same keys: they are its own
        Replayed   …<id>  account/acme v1  position 4
                   known since an earlier run: <time>
        Replayed   …<id>  account/acme v2  position 5
                   known since an earlier run: <time>

     7. 50 callers at once: North charges 80.00, key order-1002, and wants the output
        Replayed   …<id>  account/acme v3  position 6  {"balance_cents":20000,"charge":2}
                   known since an earlier run: <time>
        0 Executed, 50 Replayed; the same command, version, position and output in all: yes

     8. North opens account run-2 for this run, limit 100.00
        Executed   …<id>  account/run-2 v1  position 13

     9. Two charges of 30.00 race for it: the second is decided on what the first one makes
        Executed   …<id>  account/run-2 v2  position 14  {"balance_cents":3000,"charge":1}
        Executed   …<id>  account/run-2 v3  position 15  {"balance_cents":6000,"charge":2}
        conflicts that the bus met on the way: 0

    10. A third charge insists on v1, which its caller saw: no retry
        Conflict   account/run-2 is at v3, not v1

    11. North charges 50.00 to run-2, key late-run-2
        Rejected   50.00 is over the limit: 40.00 of 100.00 are left

    12. A refund of 30.00 makes room
        Executed   …<id>  account/run-2 v4  position 16  {"balance_cents":3000}

    13. The refused charge again, same key: a refusal leaves no record
        Executed   …<id>  account/run-2 v5  position 17  {"balance_cents":8000,"charge":3}

    14. The balances, kept by the same transactions, read with SQL
        tenant                                account               owes       limit  charges version
        018f2f6e-0000-7000-8000-000000000001  acme                200.00      500.00        2       3
        018f2f6e-0000-7000-8000-000000000001  run-2                80.00      100.00        3       5
        018f2f6e-0000-7000-8000-000000000002  acme                120.00      500.00        1       2

    15. The outcome by key: what became of North's order-1001
        command   charge <command id>
        recorded  <time>
        wrote     account/acme v2
        position  3
        output    {"balance_cents":12000,"charge":1}

    6 answers came from what an earlier run did: the keys survived.
    "#);
}

#[tokio::test]
async fn postgresql_tells_the_same_story_twice() {
    let (folder, database) = (Folder::new(), Database::new().await);
    let url = String::from(database.owner().to_url_lossy());
    for run in 1..=2 {
        let (on_file, on_server) = (folder.run(&[]), folder.run(&["--database", &url]));
        assert_eq!((on_server.code, on_server.error.as_str()), (Some(0), ""), "run {run}");
        assert_eq!(without_places(&on_server.out), without_places(&on_file.out), "run {run}");
    }
    let last = folder.run(&["--database", &url]).out;
    let title = format!("/{}: run 3 on this database; keys of", database.name());
    assert!(last.lines().next().unwrap().contains(&title), "{last}");
    assert!(last.contains("6 answers came from what an earlier run did"), "{last}");
}

#[tokio::test]
async fn on_postgresql_later_runs_need_a_role_that_owns_nothing() {
    let (folder, database) = (Folder::new(), Database::new().await);
    let owner = String::from(database.owner().to_url_lossy());
    let first = folder.run(&["--database", &owner]);
    assert_eq!((first.code, first.error.as_str()), (Some(0), ""));

    database.make_role(BUS, "sequor_app, sequor_system").await;
    let bus = String::from(database.role(BUS).to_url_lossy());
    let second = folder.run(&["--database", &bus]);
    assert_eq!((second.code, second.error.as_str()), (Some(0), ""));
    assert!(second.out.contains("the keys survived"), "{}", second.out);
    let balances = folder.run(&["--database", &bus, "balances"]).out;
    assert_eq!(balances, folder.run(&["--database", &owner, "balances"]).out);
    assert_eq!(balances.lines().count(), 5, "{balances}");
}

#[test]
fn a_hundred_columns_are_enough() {
    let folder = Folder::new();
    for run in [folder.run(&[]), folder.run(&[]), folder.run(&["--help"])] {
        for line in run.out.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
