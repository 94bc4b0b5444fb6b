-- Duties. Tables belong to a role that nobody logs in as; each login role gets what its duty needs and no more.

revoke all on all tables in schema failsafe from public, failsafe_intake, failsafe_worker, failsafe_reviewer, failsafe_operator, failsafe_auditor;
revoke all on all functions in schema failsafe from public, failsafe_intake, failsafe_worker, failsafe_reviewer, failsafe_operator, failsafe_auditor;
grant usage on schema failsafe to failsafe_intake, failsafe_worker, failsafe_reviewer, failsafe_operator, failsafe_auditor;

-- Plain functions without rights of their own.
grant execute on function duty(), effects_standing(uuid), may_have_happened(effects), utc_text(timestamptz), json_bytes(json), new_id(), may_append(text, text),
    batch_key_at(timestamptz, text, text), epoch_in_force(), restore_standing(), effect_key(text, uuid, text, integer, text)
    to failsafe_intake, failsafe_worker, failsafe_reviewer, failsafe_operator, failsafe_auditor;

-- Everybody may know which schema this is.
grant select on schema_revision to failsafe_intake, failsafe_worker, failsafe_reviewer, failsafe_operator, failsafe_auditor;

-- Intake: accept requests, see their receipts.
grant execute on function register_workflow(text, text, text, date),
    accept_requests(text, text, text, text, text[], text[], text[], bytea[], bytea[]),
    append_audit(text[], text[], text[], bytea[]) to failsafe_intake;

-- Worker: advance. No vote, no change of a proposal, effects only through functions.
grant select on epochs, requests, request_inputs, proposals, findings, assessments, claims, known_values, approval_requests, approval_votes, approval_resolutions,
    effects, batches, batch_runs, workflows, due_batches, batch_counts, audit_events, audit_heads,
    requests_v, effects_v, approvals_v, audit_v to failsafe_worker;
grant select (id, kind, name, external_id, roles, disabled_at) on principals to failsafe_worker;
grant update (state, last_event, state_seq, revision, round, approval_id, rechecked_until, lease_token, lease_until, lease_alone,
    attempts, next_eligible_at, retry_until, reason, closed_at) on requests to failsafe_worker;
grant insert on proposals, findings, assessments, claims, known_values, approval_requests, dead_letters, batch_runs to failsafe_worker;
grant select (request_id, closed_at) on dead_letters to failsafe_worker;
grant insert, update on batches to failsafe_worker;
grant select, insert, update, delete on action_types to failsafe_worker;
grant select on action_types, providers to failsafe_operator, failsafe_auditor;
grant update (opened_at, beat_at, moved, closed_at) on batch_runs to failsafe_worker;
grant delete on claims to failsafe_worker;
grant execute on function start_effects(uuid, text, uuid[], integer[], text[], bytea[], json[], integer[]),
    record_outcomes(uuid, text[], text[], text[], json[], text[]), report_late(text[], text[], text[], text[]),
    notice_restore(), suspect_effects(uuid, uuid[], integer[], text[], text[], bytea[], json[]), clear_requests(uuid, uuid[], integer),
    intended_as(uuid, integer, text, integer), settle_late_undo(uuid, text, text, interval, text), sweep_leases(text, text, integer), expire_approvals(text, text, integer),
    append_audit(text[], text[], text[], bytea[]), register_workflow(text, text, text, date), register_provider(text, integer, real) to failsafe_worker;
grant execute on function claim_events(uuid, integer, interval), mark_published(uuid, uuid[]),
    give_back_events(uuid, uuid[], interval[], boolean[]), park_events(uuid, uuid[], text[]) to failsafe_worker;

-- Reviewer: sign in, read what is asked, vote.
grant select on approval_requests, approval_votes, approval_resolutions, approvals_v, requests_v, workflows to failsafe_reviewer;
grant execute on function session_holder(text), sign_out(text), vote_obstacle(text, uuid), may_see(text, uuid) to failsafe_reviewer;
grant execute on function token_holder(text) to failsafe_intake;
grant execute on function delegate_role(text, text, text, timestamptz, timestamptz, text), revoke_delegation(text, uuid),
    list_delegations(text) to failsafe_reviewer, failsafe_operator;
grant execute on function proposal_to_edit(text, uuid), record_edit(text, uuid, bytea, bytea, bytea, bytea, bytea, text)
    to failsafe_reviewer;
grant execute on function set_limits(text, json) to failsafe_operator;
grant select on role_grants, approval_notices to failsafe_auditor;
grant execute on function announce_waiting(text, text, integer), announce_asked(text[], json[]) to failsafe_worker;
grant execute on function sign_in(text), cast_vote(text, uuid, text, bytea, bytea, text) to failsafe_reviewer;

-- Operator: principals, pauses, parked work.
grant execute on function parameters_of(effects) to failsafe_operator;
grant select on requests, request_inputs, proposals, findings, assessments, dead_letters, pauses, effects, requests_v, effects_v, approvals_v,
    audit_v, batch_counts, workflows to failsafe_operator;
grant select (id, kind, name, external_id, roles, limits, created_at, disabled_at) on principals to failsafe_operator;
grant execute on function create_principal(text, text, text, text[]), disable_principal(text), set_roles(text, text[]),
    sign_in(text), pause_work(text, text, text, text), resume_work(text, text, text, text), cancel_request(text, uuid, text),
    resolve_unknown(text, text, boolean, text), redrive_requests(text, uuid[], text, boolean),
    discard_requests(text, uuid[], text, boolean), resolve_compensation(text, uuid, text), pause_reach(text, text),
    done_and_not_undone(uuid), declare_restored(text, text), ask_undo(text, text, text),
    republish_events(text, uuid[], text, boolean), input_wanted(text, uuid), supply_input(text, uuid, integer, bytea, text)
    to failsafe_operator;
grant execute on function supplied_payload(uuid), supplied_by_another(uuid, uuid) to failsafe_worker, failsafe_operator;
grant select (id, aggregatetype, aggregateid, type, aggregate_seq, created_at, attempts, published_at, parked_at) on outbox
    to failsafe_operator;

-- Auditor: read, but what was received and what went wrong with it only as far as counts and references go: payloads and
-- failures are the operator's. Sensors and the process that loads definitions use this one.
grant select (id, workflow, workflow_version, tenant, operation_id, initiator, subject, payload_fingerprint, batch_key, state,
    last_event, state_seq, revision, round, approval_id, rechecked_until, lease_token, lease_until, lease_alone, attempts,
    crash_count, lone_crash_count, next_eligible_at, cancel_requested_at, reason, trace_id, received_at, closed_at, epoch, retry_until, supplied)
    on requests to failsafe_auditor;
grant select (request_id, revision, supplied_by, supplied_at, fields) on request_inputs to failsafe_auditor;
grant select (id, request_id, step, trace_id, opened_at, closed_at, closed_by) on dead_letters to failsafe_auditor;
grant select on proposals, findings, assessments, claims, approval_requests, approval_votes, approval_resolutions,
    effects, epochs, outbox, outbox_due, pauses, batches, batch_runs, workflows, audit_events, audit_heads, due_batches, batch_counts,
    requests_v, effects_v, approvals_v, audit_v to failsafe_auditor;
grant select (id, kind, name, external_id, roles, created_at, disabled_at) on principals to failsafe_auditor;
