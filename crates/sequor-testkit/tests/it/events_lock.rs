//! The lock of events: what it adds, and what it finds.

use std::path::PathBuf;

use sequor_core::Event;
use sequor_macros::Event;
use sequor_testkit::EventsLock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::said;

/// As it was released first.
#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
enum First {
    Opened { owner: String },
    Closed,
}

/// The shape has changed, the version has not.
#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
enum Careless {
    Opened { owner: u32 },
    Closed,
}

/// The member is new, and may be missing.
#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
enum Grown {
    Opened {
        owner: String,
        #[serde(default)]
        note: String,
    },
    Closed,
}

/// The version has grown, and no step leads to it.
#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.")]
enum Stepless {
    #[event(version = 2)]
    Opened {
        owner: u32,
    },
    Closed,
}

/// As it should be: a step, and a name that is gone.
#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.", skip("account.closed"))]
enum Second {
    #[event(version = 2, upcast(1 = in_euro))]
    Opened { owner: String, currency: String },
}

/// What is gone is passed over by a pattern only.
#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, prefix = "account.", skip("account.c*"))]
enum Vague {
    #[event(version = 2, upcast(1 = in_euro))]
    Opened { owner: String, currency: String },
}

fn in_euro(mut opened: Value) -> Value {
    opened.as_object_mut().unwrap().insert("currency".into(), json!("EUR"));
    opened
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Where the first release has written its lock.
    fn of_first() -> Self {
        let folder = Self::new();
        folder.lock().samples(first()).update();
        folder
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("events.lock")
    }

    fn lock(&self) -> EventsLock {
        EventsLock::at(self.path())
    }

    /// The lines that are no comments.
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path()).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(ToOwned::to_owned).collect()
    }

    /// What the check says of samples; the file stays as it is even where it may be updated.
    fn said<E: Event>(&self, samples: impl IntoIterator<Item = E>) -> String {
        let lock = self.lock().samples(samples);
        let before = self.lines();
        let said = said(|| lock.update());
        assert_eq!(self.lines(), before);
        said
    }
}

fn first() -> [First; 2] {
    [First::Opened { owner: "Ada".into() }, First::Closed]
}

fn second() -> [Second; 1] {
    [Second::Opened { owner: "Ada".into(), currency: "GBP".into() }]
}

#[test]
fn a_missing_file_fails_the_check_and_says_what_to_run() {
    let folder = Folder::new();
    let said = said(|| folder.lock().samples(first()).check());
    let line = "`account.opened` 1 is not in the file: run `SEQUOR_EVENTS_LOCK=update cargo test`, \
                and commit";
    assert!(said.contains(line), "{said}");
    assert!(!folder.path().exists());
}

#[test]
fn an_update_writes_sorted_lines_and_the_check_passes() {
    let folder = Folder::of_first();
    assert_eq!(folder.lines(), ["account.closed 1 null", r#"account.opened 1 {"owner":"Ada"}"#]);
    folder.lock().samples([First::Closed, First::Opened { owner: "Bob".into() }]).check();
}

#[test]
fn an_update_adds_what_is_new_and_keeps_what_is_old() {
    let folder = Folder::of_first();
    folder.lock().samples(second()).update();
    let expected = [
        "account.closed 1 null",
        r#"account.opened 1 {"owner":"Ada"}"#,
        r#"account.opened 2 {"currency":"GBP","owner":"Ada"}"#,
    ];
    assert_eq!(folder.lines(), expected);
    folder.lock().samples(second()).check();
}

#[test]
fn a_shape_that_changed_without_a_new_version_is_found() {
    let said = Folder::of_first().said([Careless::Opened { owner: 7 }, Careless::Closed]);
    assert!(said.contains("`account.opened` 1 has changed: {owner: text}"), "{said}");
    assert!(said.contains("{owner: number}"), "{said}");
    assert!(said.contains("`account.opened` 1 can no longer be read"), "{said}");
}

#[test]
fn a_new_member_that_old_payloads_may_lack_is_a_change_too() {
    let grown = Grown::Opened { owner: "Ada".into(), note: String::new() };
    let said = Folder::of_first().said([grown, Grown::Closed]);
    assert!(said.contains("{owner: text} was released"), "{said}");
    assert!(said.contains("note: text"), "{said}");
}

#[test]
fn a_released_version_to_which_no_step_leads_is_found() {
    let said = Folder::of_first().said([Stepless::Opened { owner: 7 }, Stepless::Closed]);
    let line = "`account.opened` 1 can no longer be read: event `account.opened` is stored with \
                schema 1, this build knows schema 2";
    assert!(said.contains(line), "{said}");
}

#[test]
fn a_released_event_that_only_a_pattern_skips_is_found() {
    let vague = Vague::Opened { owner: "Ada".into(), currency: "EUR".into() };
    let said = Folder::of_first().said([vague]);
    assert!(said.contains("`account.closed` 1 belongs to no event type"), "{said}");
}

#[test]
fn a_line_that_disappeared_is_found() {
    let folder = Folder::of_first();
    folder.lock().samples(second()).update();
    let kept: Vec<String> =
        folder.lines().into_iter().filter(|line| !line.contains("opened 1")).collect();
    std::fs::write(folder.path(), kept.join("\n")).unwrap();
    let said = folder.said(second());
    assert!(said.contains("`account.opened` 1 has steps, and no line"), "{said}");
}

#[test]
fn an_event_without_a_sample_is_found() {
    let said = Folder::of_first().said([First::Closed]);
    assert!(said.contains("there is no sample of `account.opened`"), "{said}");
}

#[test]
fn a_damaged_line_is_named() {
    let folder = Folder::new();
    std::fs::write(folder.path(), "# ours\naccount.opened one {}\n").unwrap();
    let said = folder.said(first());
    assert!(said.ends_with("line 2 is no name, schema version and payload in JSON"), "{said}");
}

#[derive(Event, Serialize, Deserialize)]
#[event(crate = sequor_core, name = "noted")]
struct Noted {
    tags: Vec<String>,
    note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<u32>,
}

#[test]
fn what_may_be_missing_null_or_empty_is_learnt_from_several_samples() {
    let folder = Folder::new();
    let blank = || Noted { tags: Vec::new(), note: None, by: None };
    let full = || Noted { tags: vec!["x".into()], note: Some("x".into()), by: Some(1) };
    folder.lock().samples([blank(), full()]).update();
    assert_eq!(folder.lines().len(), 2);
    folder.lock().samples([full(), blank()]).check();
}
