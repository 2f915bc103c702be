//! Each behaviour once, by name.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::harness::{Harness, Need};
use crate::world::World;

/// Turns the suite into tests of the crate that calls it, one for each behaviour, on the store of
/// a harness: `conformance!(MyHarness::new());`. The expression is evaluated for each test.
#[macro_export]
macro_rules! conformance {
    ($harness:expr $(,)?) => { $crate::conformance! { @list tests { $harness } } };
    (@list $what:ident { $($given:tt)* }) => { $crate::conformance! { @$what { $($given)* }
        commit::commit_writes_record_events_and_versions_together,
        commit::commit_answers_with_what_it_wrote,
        commit::commit_numbers_versions_without_holes,
        commit::commit_refuses_a_stale_version,
        commit::commit_refuses_a_version_ahead_of_the_stream,
        commit::commit_refuses_to_begin_a_stream_twice,
        commit::commit_refuses_a_version_of_an_absent_stream,
        commit::commit_without_events_is_recorded,
        commit::commit_without_streams_is_recorded,
        commit::commit_without_events_is_guarded_by_its_version,
        commit::commit_spans_streams_in_the_order_of_events,
        commit::commit_refused_for_one_stream_writes_none,
        commit::commit_guards_what_it_only_read,
        commit::commit_leaves_guards_as_they_are,
        commit::commit_refuses_one_side_of_a_write_skew,
        commit::commit_tells_kinds_of_aggregates_apart,
        commit::commit_lets_as_many_appends_win_as_it_stores,
        commit::commit_decided_again_loses_no_increment,
        commit::commit_takes_a_thousand_events,
        commit::commit_takes_five_thousand_events,
        commit::commit_takes_a_thousand_streams,
        commit::commit_positions_follow_commits_and_versions,
        commit::commit_fails_only_itself_among_many,
        commit::commit_dropped_after_its_first_poll_is_whole_or_nothing,
        submit::submit_in_order_becomes_true_in_order,
        submit::submit_chain_falls_with_its_first_link,
        submit::submit_chain_falls_with_any_link,
        submit::submit_refuses_a_version_of_another_maker,
        submit::submit_chain_spans_streams,
        submit::submit_dropped_is_whole_or_nothing,
        key::key_known_answers_with_the_first_record,
        key::key_known_writes_nothing,
        key::key_reused_keeps_the_first_record,
        key::key_raced_by_fifty_runs_once,
        key::key_of_a_conflict_leaves_no_record,
        key::key_of_a_taken_value_leaves_no_record,
        key::key_of_a_failing_projection_leaves_no_record,
        key::key_of_a_dropped_transaction_leaves_no_record,
        key::key_claimed_and_not_written_leaves_no_record,
        key::key_waiter_runs_when_its_rival_rolls_back,
        key::key_waiter_is_answered_when_its_rival_commits,
        key::key_differs_by_case,
        key::key_of_255_bytes_is_kept_whole,
        key::key_keeps_every_visible_character,
        key::key_absent_never_answers,
        key::key_known_wins_over_a_conflict,
        key::key_conflict_wins_over_a_taken_value,
        key::key_after_a_failure_takes_other_content,
        tenant::tenant_keys_are_independent,
        tenant::tenant_streams_are_independent,
        tenant::tenant_unique_values_are_independent,
        tenant::tenant_sees_nothing_of_another,
        tenant::tenant_race_on_one_key_runs_once_each,
        unique::unique_clash_names_scope_value_and_holder,
        unique::unique_clash_writes_nothing,
        unique::unique_value_is_replaced_by_the_next,
        unique::unique_changes_of_one_commit_follow_each_other,
        unique::unique_value_is_freed_by_its_release,
        unique::unique_release_of_nothing_is_harmless,
        unique::unique_values_are_freed_when_their_holder_ends,
        unique::unique_values_swap_in_one_commit,
        unique::unique_values_go_round_in_one_commit,
        unique::unique_value_is_handed_over_in_one_commit,
        unique::unique_value_has_no_two_claimants_in_one_commit,
        unique::unique_value_may_be_kept,
        unique::unique_value_is_kept_by_other_commands,
        unique::unique_scopes_are_independent,
        unique::unique_values_are_compared_byte_for_byte,
        unique::unique_value_released_in_vain_is_still_held,
        unique::unique_value_raced_for_goes_to_one,
        transaction::transaction_sees_its_own_writes,
        transaction::transaction_is_invisible_before_its_commit,
        transaction::transaction_dropped_writes_nothing,
        transaction::transaction_makes_several_commands_true,
        transaction::transaction_claims_find_records,
        transaction::transaction_claims_find_its_own_writes,
        transaction::transaction_refuses_to_write_a_known_key,
        transaction::transaction_holds_off_other_writers if OneWriter,
        transaction::transaction_after_transaction_loses_no_write,
        transaction::transaction_commits_the_rows_of_its_handler,
        transaction::transaction_rolls_back_the_rows_of_its_handler,
        transaction::transaction_with_a_refused_write_commits_nothing,
        transaction::transaction_judges_on_top_of_its_own_writes,
        transaction::transaction_passes_a_value_from_hand_to_hand,
        transaction::transaction_of_a_panicking_handler_writes_nothing,
        transaction::transaction_of_a_cancelled_task_writes_nothing,
        transaction::transaction_of_nothing_commits_nothing,
        transaction::transaction_speaks_for_one_tenant,
        log::log_reads_in_the_order_of_positions,
        log::log_pages_by_limit,
        log::log_reads_after_a_position,
        log::log_of_an_empty_store_is_empty,
        log::log_shows_nothing_uncommitted,
        log::log_never_gives_a_position_twice,
        log::log_followed_under_load_skips_nothing,
        projection::projection_rows_appear_with_the_commit,
        projection::projection_rows_belong_to_a_tenant,
        projection::projection_rows_vanish_with_a_refused_commit,
        projection::projection_failure_undoes_its_command,
        projection::projection_failure_leaves_its_neighbours_alone,
        projection::projection_panic_is_an_error,
        projection::projection_sees_events_as_they_are_stored,
        projection::projection_failure_undoes_other_projections,
        projection::projection_runs_once_for_a_key,
        projection::projection_rows_go_with_the_transaction,
        projection::projection_rows_add_up_under_load,
        projection::projection_abandoned_half_way_is_whole_or_nothing,
        checkpoint::checkpoint_begins_at_the_start,
        checkpoint::checkpoint_moves_with_its_rows,
        checkpoint::checkpoint_of_a_dropped_step_stays,
        checkpoint::checkpoint_of_a_failed_projection_stays,
        checkpoint::checkpoint_moves_for_the_latest_term_only,
        checkpoint::checkpoint_has_one_step_at_a_time,
        checkpoint::checkpoint_keeps_the_versions_of_streams,
        checkpoint::checkpoint_of_each_release_is_its_own,
        checkpoint::checkpoint_lists_what_is_parked,
        lease::lease_is_one_runners,
        lease::lease_renewed_keeps_its_term,
        lease::lease_taken_over_has_a_higher_term,
        lease::lease_raced_for_goes_to_one,
        lease::lease_counts_the_runners_of_a_release,
        history::history_of_an_absent_stream_is_empty,
        history::history_starts_after_a_version,
        history::history_answers_key_and_stream_at_once,
        history::history_keeps_every_part_of_meta,
        history::history_keeps_microseconds,
        history::history_keeps_names_and_schema_versions,
        history::history_is_one_snapshot,
        history::history_read_in_parts_is_the_whole,
        payload::payload_keeps_integers_exact,
        payload::payload_keeps_fractions,
        payload::payload_keeps_an_escaped_nul_that_is_text,
        payload::payload_keeps_text_of_every_script,
        payload::payload_of_one_mebibyte_is_kept,
        payload::payload_of_nothing_is_kept,
        payload::payload_nested_ninety_deep_is_kept,
        payload::payload_tells_close_members_apart,
        payload::payload_keeps_hostile_aggregate_ids,
        payload::payload_keeps_hostile_unique_values,
        payload::payload_keeps_hostile_actors,
        payload::payload_keeps_hostile_names,
        reopen::reopen_keeps_keys if Reopens,
        reopen::reopen_keeps_events if Reopens,
        reopen::reopen_keeps_positions_growing if Reopens,
        reopen::reopen_keeps_the_epoch if Reopens,
        reopen::reopen_keeps_unique_values if Reopens,
        reopen::reopen_keeps_rows_of_projections if Reopens,
        reopen::reopen_forgets_what_was_not_committed if Reopens,
        audit::audit_of_an_empty_store_finds_nothing,
        audit::audit_counts_what_is_there,
        audit::audit_of_every_kind_of_command_finds_nothing,
        audit::audit_while_commands_run_finds_nothing,
        oracle::oracle_agrees_with_the_model,
        oracle::oracle_holds_its_invariants_under_load,
    } };
    (@tests { $harness:expr } $($topic:ident::$name:ident $(if $need:ident)?,)*) => {
        $(#[test]
        fn $name() {
            $crate::check(|| $harness, stringify!($name));
        })*
    };
    (@table { $harness:ident } $($topic:ident::$name:ident $(if $need:ident)?,)*) => {
        vec![$(Behaviour {
            name: stringify!($name),
            need: [$(Need::$need)?].into_iter().next(),
            run: |world: World<$harness>| Box::pin($crate::$topic::$name(world)),
        }),*]
    };
}

/// How long a behaviour may take before it counts as hanging; far beyond what an honest store
/// needs, the bounded waits of its own included.
const BEHAVIOUR_TIME_MAX: Duration = Duration::from_secs(120);
/// The same when `SEQUOR_SLOW=1` asks for many more random histories.
const SLOW_BEHAVIOUR_TIME_MAX: Duration = Duration::from_secs(3_600);

/// A behaviour being tried.
type Trial = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Something that every store must do, or every store with an ability.
pub struct Behaviour<H: Harness> {
    name: &'static str,
    need: Option<Need>,
    run: fn(World<H>) -> Trial,
}

/// What became of a behaviour on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The store does it.
    Holds,
    /// The store cannot be asked, and why.
    NotApplicable(&'static str),
    /// The store does not do it, and what it did instead.
    Broken(String),
}

impl<H: Harness> Behaviour<H> {
    /// A sentence, such as `commit_refuses_a_stale_version`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Tries it on a fresh store, in a task of its own.
    pub async fn run(&self, harness: H) -> Verdict {
        let missing = self.need.and_then(|need| need.missing(harness.abilities()));
        if let Some(why) = missing {
            return Verdict::NotApplicable(why);
        }
        let trial = self.trial(harness);
        let time_max = if is_slow() { SLOW_BEHAVIOUR_TIME_MAX } else { BEHAVIOUR_TIME_MAX };
        match timeout(time_max, tokio::spawn(trial)).await {
            Ok(Ok(())) => Verdict::Holds,
            Ok(Err(error)) => Verdict::Broken(panic_text(error)),
            Err(_) => Verdict::Broken("it hangs".to_owned()),
        }
    }
}

impl<H: Harness> Behaviour<H> {
    /// The behaviour, and then an audit of its store; where it opens its store again, that is nobody
    /// else's meanwhile.
    fn trial(&self, harness: H) -> Trial {
        let (run, reopens) = (self.run, self.need == Some(Need::Reopens));
        Box::pin(async move {
            let world = World::new(Arc::new(harness)).await;
            if reopens {
                return run(world).await;
            }
            run(world.clone()).await;
            world.assert_clean().await;
        })
    }
}

impl<H: Harness> std::fmt::Debug for Behaviour<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Behaviour")
            .field("name", &self.name)
            .field("need", &self.need)
            .finish_non_exhaustive()
    }
}

/// Whether many more random histories are asked for.
pub(crate) fn is_slow() -> bool {
    std::env::var("SEQUOR_SLOW").is_ok_and(|slow| slow == "1")
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "it was cancelled".to_owned();
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}

/// Every behaviour, in the order of the list.
#[must_use]
pub fn all<H: Harness>() -> Vec<Behaviour<H>> {
    crate::conformance! { @list table { H } }
}

/// Runs one behaviour in a runtime of its own, as a test: what [`conformance!`] calls.
///
/// # Panics
/// When the behaviour does not hold.
#[expect(clippy::print_stdout, reason = "the output of a test says what did not apply")]
pub fn check<H: Harness>(harness: impl FnOnce() -> H, name: &str) {
    let behaviours = all::<H>();
    let behaviour = behaviours.iter().find(|one| one.name == name).expect("a listed behaviour");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .expect("a runtime");
    match runtime.block_on(async { behaviour.run(harness()).await }) {
        Verdict::Holds => {}
        Verdict::NotApplicable(why) => println!("not applicable: {why}"),
        Verdict::Broken(how) => panic!("{name} does not hold: {how}"),
    }
}
