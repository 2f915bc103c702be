use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use crate::program::Folder;

const TENANT: &str = "018f2f6e-0000-7000-8000-00000000000a";

fn sample(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

fn line(key: &str, command: &str, payload: &str) -> String {
    format!(
        r#"{{"tenant":"{TENANT}","key":"{key}","command":"{command}","payload":{payload}}}{}"#,
        '\n'
    )
}

fn open(account: &str, limit_cents: i64) -> String {
    let payload = format!(r#"{{"account":"{account}","owner":"o","limit_cents":{limit_cents}}}"#);
    line(&format!("open-{account}"), "open", &payload)
}

fn charge(key: &str, account: &str, cents: i64) -> String {
    line(key, "charge", &format!(r#"{{"account":"{account}","cents":{cents}}}"#))
}

#[test]
fn a_good_file_takes_effect_once_however_often_it_is_applied() {
    let folder = Folder::new();
    folder.write("commands.jsonl", sample("commands.jsonl"));
    let first = folder.run(&["apply", "commands.jsonl"]);
    assert_eq!((first.code, first.error.as_str()), (Some(0), ""));
    insta::assert_snapshot!(first.out, @"commands.jsonl: 8 executed, 1 replayed, 0 rejected, 0 failed, 0 bad");
    let balances = folder.run(&["balances"]).out;
    insta::assert_snapshot!(balances, @r#"
    tenant                                account               owes       limit  charges version
    018f2f6e-0000-7000-8000-00000000000a  acme                380.00      500.00        2       4
    018f2f6e-0000-7000-8000-00000000000a  bolt                199.99      200.00        1       2
    018f2f6e-0000-7000-8000-00000000000b  acme                 25.00      100.00        1       2
    "#);

    let again = folder.run(&["apply", "commands.jsonl"]);
    assert_eq!((again.code, again.error.as_str()), (Some(0), ""));
    insta::assert_snapshot!(again.out, @"commands.jsonl: 0 executed, 9 replayed, 0 rejected, 0 failed, 0 bad");
    assert_eq!(folder.run(&["balances"]).out, balances);
}

#[test]
fn bad_lines_are_named_and_good_ones_unharmed() {
    let folder = Folder::new();
    folder.write("mistakes.jsonl", sample("commands-with-mistakes.jsonl"));
    let ran = folder.run(&["apply", "mistakes.jsonl"]);
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.error, @r#"
    line 3: no valid JSON at column 66: EOF while parsing an object; write {"tenant": "…", "key": "…", "command": "…", "payload": {…}} on one line
    line 5: no command is called `pay`; take one of open, charge, refund
    line 7: command `charge` cannot be read: unknown field `amount`, expected `account` or `cents`
    line 8: command `charge` cannot be read: invalid type: floating point `1.5`, expected a whole number of cents from 1 to 9223372036854775807
    line 9: command `charge` cannot be read: invalid value: integer `-100`, expected a whole number of cents from 1 to 9223372036854775807
    line 10: command `charge` cannot be read: invalid value: integer `9223372036854775808`, expected a whole number of cents from 1 to 9223372036854775807
    line 11: the tenant is the nil UUID; there is no default tenant
    line 12: the idempotency key holds a space; it takes 1 to 255 visible ASCII characters
    line 13: no key; name the intent, so that applying the file again charges nobody twice: "key": "…"
    line 14: command `charge` cannot be read: duplicate field `cents`
    line 15: `limit_cents`: lower than 1; `owner`: length is lower than 1
    line 17: rejected: 9999.99 is over the limit: 98.00 of 100.00 are left
    line 18: key reused: it names command `charge` <command id> with another content; take a new key for a new intent
    "#);
    insta::assert_snapshot!(ran.out, @"mistakes.jsonl: 4 executed, 0 replayed, 1 rejected, 1 failed, 11 bad");
    insta::assert_snapshot!(folder.run(&["balances"]).out, @r#"
    tenant                                account               owes       limit  charges version
    018f2f6e-0000-7000-8000-00000000000a  cart                  3.00      100.00        3       4
    "#);
}

/// Applies lines that are all bad, and gives what is said about them.
fn apply_bad(lines: &[Vec<u8>]) -> String {
    let ran = Folder::new().run_with(&["apply", "-"], &lines.concat());
    let bad = lines.len();
    let summary = format!("0 executed, 0 replayed, 0 rejected, 0 failed, {bad} bad");
    assert_eq!((ran.code, ran.out), (Some(2), format!("standard input: {summary}\n")));
    ran.error
}

#[test]
fn a_line_that_is_no_request_says_what_to_write() {
    let long = "x".repeat(70_000);
    insta::assert_snapshot!(apply_bad(&[
        b"nonsense\n".to_vec(),
        b"[1, 2]\n".to_vec(),
        b"{\"tenant\": \"\xff\"}\n".to_vec(),
        format!("{{\"{long}\": 1}}\n").into(),
        format!("{}\n", "[".repeat(60_000)).into(),
        b"{} {}\n".to_vec(),
        b"{}\n".to_vec(),
        b"{\"tenant\": 5}\n".to_vec(),
        b"{\"tenant\": \"x\"}\n".to_vec(),
        b"{\"tenant\": \"x\", \"tenant\": \"y\"}\n".to_vec(),
        b"{\"tenants\": \"x\"}\n".to_vec(),
        b"{\"\\u001b[2J\": \"x\"}\n".to_vec(),
        b"{\"key\": \"\\ud800\"}\n".to_vec(),
        line("", "charge", "{}").into(),
        line("schlüssel", "charge", "{}").into(),
        line("k", "charge", "null").into(),
        line("k", "story.begin", r#"{"story":"billing"}"#).into(),
    ]), @r#"
    line 1: not a JSON object; write {"tenant": "…", "key": "…", "command": "…", "payload": {…}} on one line
    line 2: not a JSON object; write {"tenant": "…", "key": "…", "command": "…", "payload": {…}} on one line
    line 3: not UTF-8; save the file as UTF-8
    line 4: longer than 64 KiB; write one command a line
    line 5: not a JSON object; write {"tenant": "…", "key": "…", "command": "…", "payload": {…}} on one line
    line 6: no valid JSON at column 4: trailing characters; write {"tenant": "…", "key": "…", "command": "…", "payload": {…}} on one line
    line 7: no tenant; say for whom: "tenant": "<UUID>"
    line 8: invalid type: integer `5`, expected a string (column 12)
    line 9: the tenant is not a UUID
    line 10: duplicate field `tenant` (column 24)
    line 11: unknown field `tenants`, expected one of `tenant`, `key`, `actor`, `command`, `payload` (column 10)
    line 12: unknown field `�[2J`, expected one of `tenant`, `key`, `actor`, `command`, `payload` (column 12)
    line 13: no valid JSON at column 16: unexpected end of hex escape; write {"tenant": "…", "key": "…", "command": "…", "payload": {…}} on one line
    line 14: the idempotency key is empty; it takes 1 to 255 visible ASCII characters
    line 15: the idempotency key holds a character outside ASCII; it takes 1 to 255 visible ASCII characters
    line 16: no payload; add "payload": {…}
    line 17: no command is called `story.begin`; take one of open, charge, refund
    "#);
}

#[test]
fn a_payload_that_is_no_command_says_what_it_takes() {
    let charge = |payload: &str| line("k", "charge", payload).into_bytes();
    let open = |payload: &str| line("k", "open", payload).into_bytes();
    insta::assert_snapshot!(apply_bad(&[
        charge(r#"["a", 5]"#),
        charge("{}"),
        charge(r#"{"account":"a","cents":"5"}"#),
        charge(r#"{"account":"a","cents":5,"note":"n"}"#),
        charge(r#"{"account":"","cents":5}"#),
        charge(r#"{"account":"a\u0000","cents":5}"#),
        charge(r#"{"account":"\udc00","cents":5}"#),
        charge(r#"{"account":5,"cents":5}"#),
        charge(r#"{"account":"a","cents":1e2}"#),
        charge(r#"{"account":"a","cents":0}"#),
        charge(&format!("{{\"a\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000))),
        open(r#"{"account":"a","owner":"o","limit_cents":-1}"#),
        open(r#"{"account":"a","owner":"o","limit_cents":1.0}"#),
        open(r#"{"account":"a","owner":"o\u0007","limit_cents":1}"#),
    ]), @r#"
    line 1: the payload is no JSON object; write "payload": {…}
    line 2: command `charge` cannot be read: missing field `account`
    line 3: command `charge` cannot be read: invalid type: string "…", expected a whole number of cents from 1 to 9223372036854775807
    line 4: command `charge` cannot be read: unknown field `note`, expected `account` or `cents`
    line 5: `account`: empty, over 255 bytes, or with a control character
    line 6: `account`: empty, over 255 bytes, or with a control character
    line 7: command `charge` cannot be read: lone leading surrogate in hex escape
    line 8: command `charge` cannot be read: invalid type: integer `5`, expected a string
    line 9: command `charge` cannot be read: invalid type: floating point `100.0`, expected a whole number of cents from 1 to 9223372036854775807
    line 10: command `charge` cannot be read: invalid value: integer `0`, expected a whole number of cents from 1 to 9223372036854775807
    line 11: command `charge` cannot be read: unknown field `a`, expected `account` or `cents`
    line 12: `limit_cents`: lower than 1
    line 13: command `open` cannot be read: invalid type: floating point `1.0`, expected i64
    line 14: `owner`: holds a control character
    "#);
}

#[test]
fn blank_lines_comments_crlf_and_a_byte_order_mark_are_fine() {
    let folder = Folder::new();
    let input = format!(
        "\u{feff}# a comment\r\n\r\n  \n{}\r\n  # another\n  {}",
        open("a", 500).trim_end(),
        charge("k", "a", 500).trim_end(),
    );
    let ran = folder.run_with(&["apply", "-"], input.as_bytes());
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""));
    assert_eq!(ran.out, "standard input: 2 executed, 0 replayed, 0 rejected, 0 failed, 0 bad\n");
}

#[test]
fn nothing_to_apply_is_fine() {
    let ran = Folder::new().run(&["apply", "-"]);
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""));
    assert_eq!(ran.out, "standard input: 0 executed, 0 replayed, 0 rejected, 0 failed, 0 bad\n");
}

#[test]
fn lines_about_one_account_or_under_one_key_keep_their_order() {
    // Each account has room for exactly what comes first; whatever came earlier than its turn
    // would be rejected, or take the key of another.
    let accounts: Vec<_> = (0..40).map(|account| format!("a{account}")).collect();
    let mut input: String = accounts.iter().map(|account| open(account, 300)).collect();
    for round in 1..=3 {
        for account in &accounts {
            input += &charge(&format!("{account}-{round}"), account, 50 * round);
        }
    }
    input += &charge("shared", "a0", 1_000);
    input += &charge("shared", "a1", 1_000);
    let folder = Folder::new();
    let ran = folder.run_with(&["apply", "-"], input.as_bytes());
    assert_eq!(ran.out, "standard input: 160 executed, 0 replayed, 2 rejected, 0 failed, 0 bad\n");
    insta::assert_snapshot!(ran.error, @r#"
    line 161: rejected: 10.00 is over the limit: 0.00 of 3.00 are left
    line 162: rejected: 10.00 is over the limit: 0.00 of 3.00 are left
    "#);
    let balances = folder.run(&["balances"]).out;
    assert_eq!(balances.lines().filter(|line| line.contains(" 3.00 ")).count(), 40, "{balances}");
}

#[test]
fn a_line_takes_effect_while_its_sender_is_still_thinking() {
    let folder = Folder::new();
    let mut child = folder.start(&["apply", "-"]);
    let mut input = child.stdin.take().unwrap();
    let lines = format!("{}{}", open("early", 500), charge("k", "early", 501));
    input.write_all(lines.as_bytes()).unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    errors.read_line(&mut first).unwrap();
    assert_eq!(first, "line 2: rejected: 5.01 is over the limit: 5.00 of 5.00 are left\n");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_run_that_was_killed_is_completed_by_another() {
    let folder = Folder::new();
    let mut input = open("a", 1_000_000);
    for number in 0..500 {
        input += &charge(&format!("k{number}"), "a", 1);
    }
    let mut child = folder.start(&["apply", "-"]);
    // The pipe stays open, so the program is still at work, or waits for more, when it is killed.
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input.as_bytes()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    let ran = folder.run_with(&["apply", "-"], input.as_bytes());
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""), "{}", ran.out);
    let balances = folder.run(&["balances"]).out;
    let row = balances.lines().last().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(row[1..], ["a", "5.00", "10000.00", "500", "501"]);
}

#[test]
fn what_cannot_be_read_says_so() {
    let folder = Folder::new();
    for (file, said) in [("missing.jsonl", "cannot be read"), (".", "is a folder")] {
        let ran = folder.run(&["apply", file]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
        assert!(ran.error.contains(said), "{}", ran.error);
    }
}
