use crate::program::Folder;

#[test]
fn help_teaches_with_examples() {
    let help = Folder::new().run(&["--help"]);
    assert_eq!(help.code, Some(0));
    insta::assert_snapshot!(help.out, @r#"
    Charges accounts once, whoever retries.

    Without a command it opens the database and tells a story on it: charges, retries, rivals and
    refusals, each line read back from the store. Run it twice: the second run shows that the keys
    survived the restart.

    The database is a SQLite file, created where it is missing, or one on a PostgreSQL server (15 or
    newer), where the first run creates the tables: sequor's own in the schema `sequor`, and `balances`.
    Its role must be allowed to create schemas and roles. Later runs may take another role, one that
    owns nothing: GRANT sequor_app, sequor_system TO <role>;

    Usage: billing [OPTIONS] [COMMAND]

    Commands:
      story     Tell the story (what happens without a command, too)
      apply     Apply commands from a file, one JSON object a line
      outcome   Show what became of the command under a key
      balances  Show what every account owes; works while another process has the database, too
      help      Print this message or the help of the given subcommand(s)

    Options:
          --database <URL>
              A SQLite file: sqlite://file.db, sqlite:file.db or a path; or a PostgreSQL database:
              postgres://user:password@host:port/database
              
              [default: billing.db]

      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

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

    Exit codes: 0 all went well; 1 nothing could be done; 2 some lines of `apply` did not take effect.
    "#);
}

#[test]
fn help_for_apply_says_what_a_line_holds() {
    let help = Folder::new().run(&["apply", "--help"]);
    assert_eq!(help.code, Some(0));
    insta::assert_snapshot!(help.out, @r#"
    Apply commands from a file, one JSON object a line

      {"tenant": "018f2f6e-0000-7000-8000-00000000000a", "key": "open-7", "command": "open",
       "payload": {"account": "acme", "owner": "Acme Travel", "limit_cents": 50000}}

    (on one line each). Members:
      tenant   whose: a UUID, not the nil one
      key      names the intent: 1 to 255 visible ASCII characters; the same line again is replayed
      actor    who asks (optional)
      command  with its payload, all members of which are needed:
               open    {"account": text, "owner": text, "limit_cents": 1 to 1000000000}
               charge  {"account": text, "cents": whole number from 1}
               refund  {"account": text, "cents": whole number from 1}

    Blank lines and lines that begin with # are skipped. Lines end with LF or CRLF, are UTF-8 and take
    64 KiB at most. A bad line is named on stderr (line 17: ...) and does nothing; the good ones take
    effect, in order for each account. Apply the file again after mending it, or after Ctrl-C: what
    has taken effect is replayed.

    Exit codes: 0 all lines took effect, now or before; 1 the file or the database cannot be used, the
    message says how far it came; 2 some lines were bad, rejected, or failed.

    Usage: billing apply [OPTIONS] <FILE>

    Arguments:
      <FILE>
              The file, or - for standard input

    Options:
          --database <URL>
              A SQLite file: sqlite://file.db, sqlite:file.db or a path; or a PostgreSQL database:
              postgres://user:password@host:port/database
              
              [default: billing.db]

      -h, --help
              Print help (see a summary with '-h')
    "#);
}

#[test]
fn a_wrong_command_line_is_exit_code_1_since_2_means_bad_lines() {
    for wrong in [&["aply"][..], &["apply"], &["outcome", "k"], &["--bogus"]] {
        let ran = Folder::new().run(wrong);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{wrong:?}");
        assert!(ran.error.contains("--help"), "{wrong:?}: {}", ran.error);
    }
}

#[test]
fn an_outcome_is_found_by_tenant_and_key() {
    let (folder, north) = (Folder::new(), "018f2f6e-0000-7000-8000-000000000001");
    assert_eq!(folder.run(&[]).code, Some(0));
    let known = folder.run(&["outcome", "--tenant", north, "order-1002"]);
    assert_eq!(known.code, Some(0));
    insta::assert_snapshot!(known.out, @r#"
    command   charge <command id>
    recorded  <time>
    wrote     account/acme v3
    position  6
    output    {"balance_cents":20000,"charge":2}
    "#);

    let unknown = folder.run(&["outcome", "--tenant", north, "ORDER-1002"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (Some(1), ""));
    insta::assert_snapshot!(unknown.error, @"billing: nothing has taken effect under key ORDER-1002 for tenant 018f2f6e-0000-7000-8000-000000000001");

    for (tenant, key) in [("00000000-0000-0000-0000-000000000000", "k"), ("1", "k"), (north, "")] {
        assert_eq!(folder.run(&["outcome", "--tenant", tenant, key]).code, Some(1));
    }
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let folder = Folder::new();
    let mut child = folder.start(&[]);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
