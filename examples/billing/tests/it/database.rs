use sequor::sqlite::SqliteStore;
use sequor_testserver::Database;
use sqlx::ConnectOptions as _;

use crate::program::Folder;

#[test]
fn an_address_is_a_url_or_a_bare_path() {
    let folder = Folder::new();
    let whole = folder.path().join("whole.db");
    let whole = format!("sqlite://{}", whole.display());
    for (address, file) in [
        ("sqlite://one.db", "one.db"),
        ("sqlite:two.db", "two.db"),
        ("three.db", "three.db"),
        (&whole, "whole.db"),
    ] {
        let ran = folder.run(&["--database", address]);
        assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""), "{address}");
        assert!(ran.out.contains(&format!("{file}: first run on this file")), "{}", ran.out);
        assert!(folder.path().join(file).is_file(), "{address}");
    }
    assert!(!folder.path().join("billing.db").exists());
}

#[test]
fn what_is_no_database_is_refused_with_a_reason() {
    let folder = Folder::new();
    folder.write("notes.txt", "not a database, and long enough to be looked at as one ".repeat(99));
    let mut said = String::new();
    for address in [
        "postgres://127.0.0.1:1/billing",
        "postgresql://localhost:port/billing",
        "mysql://localhost/billing",
        "",
        "sqlite://",
        ":memory:",
        "sqlite://b.db?mode=ro",
        ".",
        "missing/b.db",
        "notes.txt",
    ] {
        let ran = folder.run(&["--database", address]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{address}");
        let first = ran.error.lines().next().unwrap();
        said.push_str(&first.replace(folder.path().to_str().unwrap(), "<folder>"));
        said.push('\n');
    }
    insta::assert_snapshot!(said, @r#"
    billing: postgres://127.0.0.1:1/billing cannot be opened: the database cannot be used: the store is not available: database `billing` at 127.0.0.1:1: error communicating with database: Connection refused (os error 111); is the server running, and is this its host and port?
    error: invalid value 'postgresql://localhost:port/billing' for '--database <URL>': the address is not of the form `postgres://role:password@host:port/database`
    error: invalid value 'mysql://localhost/billing' for '--database <URL>': `mysql://` is not supported; take a file, sqlite://file.db, or a server, postgres://user@host/database
    error: invalid value '' for '--database <URL>': the path of the SQLite file is empty; say where it lies, such as `sqlite://billing.db`
    error: invalid value 'sqlite://' for '--database <URL>': the path of the SQLite file is empty; say where it lies, such as `sqlite://billing.db`
    error: invalid value ':memory:' for '--database <URL>': `:memory:` keeps nothing; take a file, or the memory store (`sequor-memory`)
    error: invalid value 'sqlite://b.db?mode=ro' for '--database <URL>': `?mode=ro`: the address takes no parameters; set them on `SqliteSettings`
    billing: . is a folder; name a file in it with --database
    billing: make sure that the folder is there and can be written: missing/b.db cannot be used: No such file or directory (os error 2)
    billing: <folder>/notes.txt is no SQLite database; name another file, or move this one away
    "#);
}

#[test]
fn who_only_reads_creates_nothing() {
    let folder = Folder::new();
    let tenant = "018f2f6e-0000-7000-8000-000000000001";
    for arguments in [&["balances"][..], &["outcome", "--tenant", tenant, "k"]] {
        let ran = folder.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        assert!(ran.error.contains("run `billing` first"), "{}", ran.error);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn who_only_reads_leaves_a_database_on_a_server_as_it_is() {
    let (folder, database) = (Folder::new(), Database::new().await);
    let url = String::from(database.owner().to_url_lossy());
    let tenant = "018f2f6e-0000-7000-8000-000000000001";
    for arguments in [&["balances"][..], &["outcome", "--tenant", tenant, "k"]] {
        let ran = folder.run(&[&["--database", &url], arguments].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        assert!(ran.error.contains("run `billing` first"), "{}", ran.error);
    }
    database.run("DO $$ BEGIN ASSERT to_regnamespace('sequor') IS NULL; END $$").await;
}

#[tokio::test]
async fn a_role_that_may_not_create_tables_is_told_who_may() {
    let (folder, database) = (Folder::new(), Database::new().await);
    database.make_role("billing_test_nobody", "pg_read_all_stats").await;
    let url = String::from(database.role("billing_test_nobody").to_url_lossy());
    let ran = folder.run(&["--database", &url]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.error.contains("a role that may create schemas and roles"), "{}", ran.error);
}

#[tokio::test]
async fn a_file_that_another_bus_has_is_refused_and_can_be_read() {
    let folder = Folder::new();
    assert_eq!(folder.run(&[]).code, Some(0));
    let other = SqliteStore::open_path(folder.path().join("billing.db")).await.unwrap();

    for arguments in [&["story"][..], &["apply", "-"]] {
        let ran = folder.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        assert!(ran.error.contains("in use by another bus"), "{}", ran.error);
        assert!(ran.error.contains("stop that process"), "{}", ran.error);
    }
    let balances = folder.run(&["balances"]);
    assert_eq!((balances.code, balances.error.as_str()), (Some(0), ""));
    insta::assert_snapshot!(balances.out, @r#"
    tenant                                account               owes       limit  charges version
    018f2f6e-0000-7000-8000-000000000001  acme                200.00      500.00        2       3
    018f2f6e-0000-7000-8000-000000000001  run-1                80.00      100.00        3       5
    018f2f6e-0000-7000-8000-000000000002  acme                120.00      500.00        1       2
    "#);

    other.close().await;
    assert_eq!(folder.run(&[]).code, Some(0));
}
