//! Given, when, then for deciders.

use sequor_core::UniqueChange;
use sequor_testkit::given;

use crate::{Ask, No, Turned, Turnstile, said};

fn paid() -> sequor_testkit::Given<Turnstile> {
    given::<Turnstile>([Turned::Paid { cents: 100 }])
}

#[test]
fn events_output_state_and_unique_values_are_checked() {
    given::<Turnstile>([])
        .when(&Ask::pay("north", 100))
        .then([Turned::Paid { cents: 100 }])
        .then_output(&0)
        .then_holds("turnstile.paid", "north")
        .then_state(|turnstile| turnstile.paid);
    paid()
        .when(&Ask::pass("north"))
        .then([Turned::Passed])
        .then_releases("turnstile.paid")
        .then_state(|turnstile| turnstile.passed == 1);
    given::<Turnstile>([]).when(&Ask::pay("north", 0)).then([]).then_unique([]);
}

#[test]
fn another_payload_is_shown_line_by_line() {
    let said = said(|| {
        let decided = given::<Turnstile>([]).when(&Ask::pay("north", 100));
        decided.then([Turned::Paid { cents: 50 }]);
    });
    let shown = "events differ (- expected, + actual):\n  turnstile.paid v1 {\n-   \"cents\": 50\n\
                 +   \"cents\": 100\n  }";
    assert_eq!(said, shown);
}

#[test]
fn a_missing_event_is_shown() {
    let said = said(|| {
        paid().when(&Ask::pass("north")).then([Turned::Passed, Turned::Passed]);
    });
    assert!(said.ends_with("  turnstile.passed v1 null\n- turnstile.passed v1 null"), "{said}");
}

#[test]
fn a_rejection_where_events_were_expected_is_told() {
    let said = said(|| {
        given::<Turnstile>([]).when(&Ask::pass("north")).then([Turned::Passed]);
    });
    assert_eq!(said, "the command was rejected: NotPaid");
}

#[test]
fn events_where_a_rejection_was_expected_are_told() {
    let said = said(|| {
        paid().when(&Ask::pass("north")).then_rejected(|no| matches!(no, No::NotPaid));
    });
    assert!(said.contains("expected a rejection") && said.contains("turnstile.passed"), "{said}");
}

#[test]
fn another_rejection_is_told() {
    let said = said(|| {
        let decided = given::<Turnstile>([]).when(&Ask::pass("north"));
        decided.then_rejected(|no| matches!(no, No::PaidBefore));
    });
    assert_eq!(said, "rejected, but with another reason: NotPaid");
}

#[test]
fn another_output_or_unique_change_is_told() {
    let output = said(|| {
        paid().when(&Ask::pass("north")).then_output(&7);
    });
    assert_eq!(output, "outputs differ (- expected, + actual):\n- 7\n+ 1");
    let unique = said(|| {
        paid().when(&Ask::pass("north")).then_unique([UniqueChange::ReleaseAll]);
    });
    assert!(unique.contains("- ReleaseAll\n+ Release(\"turnstile.paid\")"), "{unique}");
    let held = said(|| {
        paid().when(&Ask::pass("north")).then_holds("turnstile.paid", "north");
    });
    assert!(held.starts_with("no Hold("), "{held}");
}
