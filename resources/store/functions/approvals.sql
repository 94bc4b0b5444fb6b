-- Deciding. A vote carries the voter's own session secret: holding the service's database login is not enough.

-- What a person who decides by this session is held against, with the request and the approval request locked; and with
-- the person, whoever lent them a role, and the loans, so that disabling somebody, changing their roles or limits, or
-- taking a loan back comes wholly before or wholly after.
create or replace function open_decision(
    p_session text, p_approval uuid, p_proposal_hash bytea, p_review_hash bytea,
    out who principals, out request requests, out asked approval_requests, out instant timestamptz)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    outcome text;
begin
    who := session_principal(p_session);
    select r.* into request from requests r
    where r.id = (select a.request_id from approval_requests a where a.id = p_approval) for update;
    select a.* into asked from approval_requests a where a.id = p_approval for update;
    perform from principals p where p.id = who.id
        or p.id in (select g.giver from role_grants g where g.grantee = who.id and g.revoked_at is null)
    order by p.id for share;
    perform from role_grants g where g.grantee = who.id and g.revoked_at is null order by g.id for share;
    who := session_principal(p_session); -- as they are now, after waiting
    instant := clock_timestamp(); -- after locking, so a vote that waited past the expiry is late
    if asked.id is null then
        raise exception 'there is no such approval request' using errcode = 'FS404';
    end if;
    select s.outcome into outcome from approval_resolutions s where s.approval_id = asked.id;
    if outcome = 'expired' or outcome is null and asked.expires_at <= instant then
        raise exception 'this approval request expired at %', utc_text(asked.expires_at) using errcode = 'FS411';
    elsif outcome = 'voided' then
        raise exception 'this approval request is void: the request went on to a new round or revision' using errcode = 'FS410';
    elsif outcome is not null then
        raise exception 'this approval request is already resolved: %', outcome using errcode = 'FS410';
    elsif request.state <> 'awaiting_approval' or request.approval_id is distinct from asked.id then
        raise exception 'the request no longer waits for this approval' using errcode = 'FS410';
    elsif p_proposal_hash is distinct from asked.proposal_hash or p_review_hash is distinct from asked.review_hash then
        raise exception 'what you decided on is not what is asked now' using errcode = 'FS412';
    elsif not may_vote(who, asked) then
        raise exception '% may not decide on this request', who.name using errcode = 'FS403';
    end if;
end
$$;

create or replace function cast_vote(
    p_session text, p_approval uuid, p_vote text, p_proposal_hash bytea, p_review_hash bytea, p_reason text)
    returns table (outcome text, votes_for integer, votes_needed integer)
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    deciding  record := open_decision(p_session, p_approval, p_proposal_hash, p_review_hash);
    voter     principals := deciding.who;
    asked     approval_requests := deciding.asked;
    for_whom  uuid;
    approved  integer;
    resolved  text;
    new_state text;
begin
    if not (voter.roles && deciding_roles(asked)) then
        -- By a lent role: in the place of a lender who is not heard yet, or of any for a denial.
        select l into for_whom from unnest(lenders(voter, asked)) l order by l = any (approving(asked)), l limit 1;
        if for_whom is null then -- its time ended just now
            raise exception '% may not decide on this request', voter.name using errcode = 'FS403';
        end if;
    end if;
    if p_vote = 'approve' and coalesce(for_whom, voter.id) = any (approving(asked))
        and not exists (select from approval_votes v where v.approval_id = asked.id and v.voter = voter.id) then
        raise exception '% approved already in the same place: a role and its loans are one voice', (
            select string_agg(p.name, ', ' order by p.name) from approval_votes v join principals p on p.id = v.voter
            where v.approval_id = asked.id and coalesce(v.in_place_of, v.voter) = coalesce(for_whom, voter.id)
        ) using errcode = 'FS413';
    end if;
    insert into approval_votes (approval_id, voter, vote, reason, proposal_hash, review_hash, cast_at, in_place_of)
    values (asked.id, voter.id, p_vote, p_reason, p_proposal_hash, p_review_hash, deciding.instant, for_whom); -- the key refuses a second vote

    approved := cardinality(approving(asked));
    resolved := case when p_vote = 'deny' then 'denied' when approved >= asked.quorum then 'released' end;
    if resolved is not null then
        insert into approval_resolutions (approval_id, outcome, resolved_at) values (asked.id, resolved, deciding.instant);
    end if;
    if resolved = 'denied' then
        new_state := end_round(asked.request_id, 'denied', 'rejected', 'denied by a reviewer');
    elsif resolved = 'released' then
        new_state := 'executing';
        update requests set state = 'executing', last_event = 'approved', state_seq = state_seq + 1,
            next_eligible_at = deciding.instant, rechecked_until = null, reason = null
        where id = asked.request_id;
    end if;
    perform write_audit(array['request:' || asked.request_id], array['approval.vote'], array['principal:' || voter.id],
        array[json_bytes(json_build_object('approval', asked.id, 'vote', p_vote, 'reason', p_reason, 'proposal',
            encode(p_proposal_hash, 'hex'), 'review', encode(p_review_hash, 'hex'), 'in_place_of', for_whom, 'for', approved,
            'needed', asked.quorum, 'resolution', resolved, 'state', new_state))]);
    return query select coalesce(resolved, 'open'), approved, asked.quorum;
end
$$;

-- Approval requests whose time is over. Expiry never approves; it is also checked when an approval is consumed.
create or replace function expire_approvals(p_workflow text, p_batch text, p_limit integer) returns integer
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    due uuid[];
    asked uuid[];
    new_states text[];
begin
    select array_agg(d.id), array_agg(d.approval_id) into due, asked from (
        select r.id, r.approval_id from requests r join approval_requests a on a.id = r.approval_id
        where r.workflow = p_workflow and r.batch_key = p_batch and r.closed_at is null and r.state = 'awaiting_approval'
          and a.expires_at <= clock_timestamp()
        order by r.id limit p_limit for update of r skip locked
    ) d;
    if due is null then
        return 0;
    end if;
    insert into approval_resolutions (approval_id, outcome, resolved_at)
    select a, 'expired', clock_timestamp() from unnest(asked) a;
    new_states := array(select end_round(d, 'approval_expired', 'expired', 'nobody decided in time') from unnest(due) d);
    perform announce(array_agg('request:' || d), array_agg('approval.expired'::text),
        array_agg(json_build_object('workflow', p_workflow, 'approval', a, 'state', s))) from unnest(due, asked, new_states) as e (d, a, s);
    return cardinality(due);
end
$$;

-- A request that goes on to a new round or revision leaves its approval request behind: that one is void from then on,
-- released or not, unless an effect was started by it. Whoever moves the request, it happens in the same transaction.
create or replace function void_approval() returns trigger
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
begin
    insert into approval_resolutions (approval_id, outcome, resolved_at) values (old.approval_id, 'voided', clock_timestamp())
    on conflict (approval_id) do update set outcome = 'voided', resolved_at = excluded.resolved_at
        where approval_resolutions.outcome = 'released' and approval_resolutions.consumed_at is null;
    return null;
end
$$;

create or replace trigger requests_void_what_they_leave after update of approval_id on requests for each row
    when (old.approval_id is not null and new.approval_id is distinct from old.approval_id) execute function void_approval();

-- Who submitted a request, added to it or edited its proposal never decides on it, whatever a worker asks for.
create or replace function exclude_editors() returns trigger
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
begin
    new.excluded := array(
        select e from unnest(new.excluded) e
        union select r.initiator from requests r where r.id = new.request_id
        union select i.supplied_by from request_inputs i where i.request_id = new.request_id
        union select p.edited_by from proposals p where p.request_id = new.request_id and p.edited_by is not null);
    return new;
end
$$;

create or replace trigger approval_requests_exclude_editors before insert on approval_requests for each row
    execute function exclude_editors();
