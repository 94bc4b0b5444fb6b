-- What a surface for people asks before it shows or offers something. cast_vote decides all the same.

-- Why the holder of this session may not vote on this approval request, whatever its state; null: they may.
create or replace function vote_obstacle(p_session text, p_approval uuid) returns text
    language plpgsql stable security definer set search_path = failsafe, pg_temp
as $$
declare
    voter principals := session_principal(p_session);
    asked approval_requests;
begin
    select a.* into asked from approval_requests a where a.id = p_approval;
    return case
        when may_vote(voter, asked) then null
        when voter.kind <> 'human' then 'a service never votes'
        when exists (select from proposals p where p.request_id = asked.request_id and p.edited_by = voter.id)
            then 'you edited this proposal: somebody else decides on it'
        when voter.id <> (select r.initiator from requests r where r.id = asked.request_id)
            and exists (select from request_inputs i where i.request_id = asked.request_id and i.supplied_by = voter.id)
            then 'you supplied input to this request: somebody else decides on it'
        when voter.id = any (asked.excluded) then 'you submitted this request'
        when voter.external_id = any (asked.excluded_people) or voter.name = any (asked.excluded_people)
            then 'this request is on your behalf or touches you, as its payee does'
        when not (held_roles(voter, asked) && deciding_roles(asked))
            then 'it takes one of these roles: ' || array_to_string(deciding_roles(asked), ', ')
        when not within_limits(voter, asked) then 'it is over what you may decide on'
        else 'you may not decide on this request'
    end;
end
$$;

-- Whether the holder of this session may look at a request: who may decide on it or is kept from deciding, who submitted
-- it, operators and auditors.
create or replace function may_see(p_session text, p_request uuid) returns boolean
    language plpgsql stable security definer set search_path = failsafe, pg_temp
as $$
declare
    viewer principals := session_principal(p_session);
begin
    return viewer.roles && array['operator', 'auditor']
        or exists (select from requests r where r.id = p_request and r.initiator = viewer.id)
        or exists (select from approval_requests a where a.request_id = p_request and (may_vote(viewer, a) or held_roles(viewer, a) && deciding_roles(a)
            or viewer.external_id = any (a.excluded_people) or viewer.name = any (a.excluded_people)));
end
$$;
