//! For each fault the behaviours that must notice it.

use std::sync::Arc;

use sequor_conformance::{Verdict, all};

use crate::broken::{BrokenHarness, Fault};
use crate::faults;

/// Runs the named behaviours on stores with a fault: none may hold.
fn assert_noticed(fault: fn() -> Arc<dyn Fault>, by: &[&str]) {
    let behaviours = all::<BrokenHarness>();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for name in by {
        let behaviour = behaviours.iter().find(|one| one.name() == *name);
        let behaviour = behaviour.unwrap_or_else(|| panic!("no behaviour is called {name}"));
        let verdict = runtime.block_on(behaviour.run(BrokenHarness(fault)));
        assert!(
            matches!(verdict, Verdict::Broken(_)),
            "{name} does not notice a store that {:?}: {verdict:?}",
            fault()
        );
    }
}

macro_rules! noticed {
    ($($test:ident: $fault:ident, by $($name:ident),+;)*) => { $(
        #[test]
        fn $test() {
            assert_noticed(
                || Arc::<faults::$fault>::default() as _,
                &[$(stringify!($name)),+],
            );
        }
    )* };
}

noticed! {
    a_store_that_forgets_the_tenant_of_keys_is_noticed: ForgetsTenantOfKeys,
        by tenant_keys_are_independent;
    a_store_that_ignores_the_tenant_of_streams_is_noticed: IgnoresTenantOfStreams,
        by tenant_streams_are_independent;
    a_store_that_ignores_the_tenant_of_unique_values_is_noticed: IgnoresTenantOfUniqueValues,
        by tenant_unique_values_are_independent;
    a_store_that_answers_with_the_callers_fingerprint_is_noticed: AnswersWithCallersFingerprint,
        by key_reused_keeps_the_first_record;
    a_store_that_overwrites_the_first_record_is_noticed: OverwritesFirstRecord,
        by key_reused_keeps_the_first_record;
    a_store_that_loses_the_output_on_a_replay_is_noticed: LosesOutputOnReplay,
        by key_known_answers_with_the_first_record;
    a_store_that_reports_a_replay_of_a_rolled_back_rival_is_noticed: ReplaysRolledBackRival,
        by key_waiter_runs_when_its_rival_rolls_back, key_of_a_dropped_transaction_leaves_no_record;
    a_store_that_keeps_the_key_of_a_failed_command_is_noticed: KeepsKeyOfFailedCommand,
        by key_of_a_conflict_leaves_no_record, key_after_a_failure_takes_other_content;
    a_store_that_folds_the_case_of_keys_is_noticed: FoldsCaseOfKeys,
        by key_differs_by_case;
    a_store_that_records_no_command_without_events_is_noticed: RecordsNoEmptyCommand,
        by commit_without_events_is_recorded, oracle_agrees_with_the_model;
    a_store_that_judges_versions_before_keys_is_noticed: JudgesVersionsFirst,
        by key_known_wins_over_a_conflict;
    a_store_that_leaves_holes_in_versions_is_noticed: LeavesHolesInVersions,
        by commit_numbers_versions_without_holes, history_starts_after_a_version;
    a_store_that_does_not_check_versions_is_noticed: ChecksNoVersion,
        by commit_refuses_a_stale_version, submit_chain_falls_with_its_first_link,
        oracle_agrees_with_the_model;
    a_store_that_forgets_who_made_a_version_is_noticed: ForgetsMakers,
        by submit_refuses_a_version_of_another_maker;
    a_store_that_judges_when_it_is_asked_is_noticed: JudgesWhenAsked,
        by submit_in_order_becomes_true_in_order;
    a_store_that_claims_for_any_tenant_is_noticed: ClaimsForAnyTenant,
        by transaction_speaks_for_one_tenant;
    a_store_that_ignores_guards_is_noticed: IgnoresGuards,
        by commit_guards_what_it_only_read, commit_refuses_one_side_of_a_write_skew;
    a_store_that_calls_a_conflict_a_success_is_noticed: CallsConflictSuccess,
        by commit_lets_as_many_appends_win_as_it_stores, oracle_holds_its_invariants_under_load;
    a_store_that_sorts_events_by_stream_is_noticed: SortsEventsByStream,
        by commit_spans_streams_in_the_order_of_events;
    a_store_that_commits_in_two_steps_is_noticed: CommitsInTwoSteps,
        by commit_dropped_after_its_first_poll_is_whole_or_nothing;
    a_store_that_forgets_releases_is_noticed: ForgetsReleases,
        by unique_value_is_freed_by_its_release, unique_values_are_freed_when_their_holder_ends;
    a_store_that_claims_before_it_releases_is_noticed: ClaimsBeforeReleasing,
        by unique_values_swap_in_one_commit, unique_value_is_handed_over_in_one_commit;
    a_store_that_names_the_claimant_as_holder_is_noticed: NamesClaimantAsHolder,
        by unique_clash_names_scope_value_and_holder;
    a_store_that_shows_open_transactions_is_noticed: ShowsOpenTransactions,
        by transaction_is_invisible_before_its_commit;
    a_store_that_refuses_instead_of_waiting_is_noticed: RefusesInsteadOfWaiting,
        by transaction_holds_off_other_writers, key_waiter_runs_when_its_rival_rolls_back;
    a_store_that_forgives_refused_writes_is_noticed: ForgivesRefusedWrites,
        by transaction_with_a_refused_write_commits_nothing;
    a_store_that_gives_positions_again_is_noticed: GivesPositionsAgain,
        by log_never_gives_a_position_twice;
    a_store_that_skips_an_event_of_a_page_is_noticed: SkipsEventOfPage,
        by log_pages_by_limit, log_reads_in_the_order_of_positions;
    a_store_that_keeps_rows_of_failed_projections_is_noticed: KeepsRowsOfFailedProjections,
        by projection_failure_undoes_its_command;
    a_store_that_projects_again_on_a_replay_is_noticed: ProjectsAgainOnReplay,
        by projection_runs_once_for_a_key;
    a_store_that_reads_from_the_beginning_is_noticed: ReadsFromTheBeginning,
        by history_starts_after_a_version;
    a_store_that_cuts_microseconds_is_noticed: CutsMicroseconds,
        by history_keeps_microseconds;
    a_store_that_reads_numbers_as_doubles_is_noticed: ReadsNumbersAsDoubles,
        by payload_keeps_integers_exact;
    a_store_that_miscounts_events_is_noticed: MiscountsEvents,
        by audit_counts_what_is_there;
    a_store_that_finds_what_is_not_there_is_noticed: FindsWhatIsNotThere,
        by audit_of_an_empty_store_finds_nothing, audit_while_commands_run_finds_nothing,
        commit_without_events_is_recorded;
    a_store_that_strips_nul_escapes_is_noticed: StripsNulEscapes,
        by payload_keeps_an_escaped_nul_that_is_text;
}

/// The wrapper itself breaks nothing, and every behaviour holds or says why it cannot be asked.
#[test]
fn a_store_without_fault_passes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for behaviour in all::<BrokenHarness>() {
        let harness = BrokenHarness(|| Arc::<faults::Nothing>::default() as _);
        match runtime.block_on(behaviour.run(harness)) {
            Verdict::Holds => {}
            Verdict::NotApplicable(why) => assert!(behaviour.name().starts_with("reopen"), "{why}"),
            Verdict::Broken(how) => panic!("{}: {how}", behaviour.name()),
        }
    }
}
