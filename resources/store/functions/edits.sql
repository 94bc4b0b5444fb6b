-- A reviewer who would approve something else than what is asked changes its parameters: that is a new proposal, which is
-- validated, scored and decided anew by somebody else.

-- What somebody who may decide on this approval request needs to make another proposal of it.
create or replace function proposal_to_edit(p_session text, p_approval uuid)
    returns table (request_id uuid, workflow text, workflow_version text, revision integer, canonical bytea, payload bytea, roles text[])
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who   principals := session_principal(p_session);
    asked approval_requests;
begin
    select a.* into asked from approval_requests a where a.id = p_approval;
    if asked.id is null then
        raise exception 'there is no such approval request' using errcode = 'FS404';
    elsif not may_vote(who, asked) then
        raise exception '% may not decide on this request', who.name using errcode = 'FS403';
    end if;
    return query
    select r.id, r.workflow, r.workflow_version, asked.revision, p.canonical, case when r.supplied then supplied_payload(r.id) else r.payload end,
        case when initiator.disabled_at is null then initiator.roles else '{}' end
    from requests r
    join proposals p on p.request_id = r.id and p.revision = asked.revision
    join principals initiator on initiator.id = r.initiator
    where r.id = asked.request_id;
end
$$;

-- What of a proposal an edit may not touch: which request and sources it is of, and which actions go where. Of an action,
-- parameters and their evidence may change.
create or replace function fixed_part(p_canonical bytea) returns jsonb
    language sql immutable
as $$
    select (document - 'revision' - 'actions') || jsonb_build_object('actions', (
        select jsonb_agg(action - 'parameters' - 'evidence' order by ord)
        from jsonb_array_elements(document -> 'actions') with ordinality a (action, ord)))
    from (select convert_from(p_canonical, 'UTF8')::jsonb as document) d
$$;

create or replace function parameters_part(p_canonical bytea) returns jsonb
    language sql immutable
as $$
    select jsonb_agg(action -> 'parameters' order by ord)
    from jsonb_array_elements(convert_from(p_canonical, 'UTF8')::jsonb -> 'actions') with ordinality a (action, ord)
$$;

-- Take an edit as one takes a vote: from who may decide, on exactly what was shown, while it is open. The approval request
-- that stands becomes void with its votes; the editor never decides on this request again. Returns the new revision.
create or replace function record_edit(
    p_session text, p_approval uuid, p_proposal_hash bytea, p_review_hash bytea, p_output bytea, p_canonical bytea, p_hash bytea, p_reason text)
    returns integer
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    deciding record := open_decision(p_session, p_approval, p_proposal_hash, p_review_hash);
    editor   principals := deciding.who;
    request  requests := deciding.request;
    standing proposals;
    made     integer := request.revision + 1;
begin
    select p.* into standing from proposals p where p.request_id = request.id and p.revision = request.revision;
    if exists (select from effects e where e.request_id = request.id and e.state not in ('refused', 'fenced')) then
        raise exception 'an effect of this request was begun: what it does can no longer be changed' using errcode = 'FS420';
    elsif coalesce(length(trim(p_reason)), 0) not between 1 and 500 then
        raise exception 'say why you change it, in at most 500 characters' using errcode = 'FS400';
    elsif sha256(convert_to('failsafe/proposal/v1', 'UTF8') || '\x00'::bytea || p_canonical) is distinct from p_hash then
        raise exception 'the hash is not that of the new proposal' using errcode = 'FS400';
    elsif fixed_part(p_canonical) is distinct from fixed_part(standing.canonical)
        or convert_from(p_canonical, 'UTF8')::json ->> 'revision' is distinct from made::text then
        raise exception 'an edit changes parameters of the next revision of this very proposal, and nothing else' using errcode = 'FS400';
    elsif parameters_part(p_canonical) = parameters_part(standing.canonical) then
        raise exception 'these are the parameters that are asked already' using errcode = 'FS400';
    end if;
    insert into proposals (request_id, revision, kind, output, canonical, hash, model, prompt_version, edited_by)
    values (request.id, made, 'proposal', p_output, p_canonical, p_hash, standing.model, standing.prompt_version, editor.id);
    update requests set state = 'proposal_ready', last_event = 'edited', state_seq = state_seq + 1, revision = made,
        approval_id = null, rechecked_until = null, attempts = 0, retry_until = null, next_eligible_at = deciding.instant,
        reason = left('edited: ' || p_reason, 500)
    where id = request.id; -- and so the approval request is void
    delete from claims c where c.request_id = request.id; -- taken again with the new parameters, if they may be
    perform write_audit(array['request:' || request.id], array['proposal.edited'], array['principal:' || editor.id],
        array[json_bytes(json_build_object('event', 'edited', 'state', 'proposal_ready', 'approval', p_approval, 'revision', made,
            'was', encode(p_proposal_hash, 'hex'), 'proposal', encode(p_hash, 'hex'), 'review', encode(p_review_hash, 'hex'),
            'reason', p_reason))]);
    return made;
end
$$;
