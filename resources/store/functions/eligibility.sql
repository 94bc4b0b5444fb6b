-- Whose vote counts on an approval request, now. cast_vote asks this of whoever votes, start_effects of whoever did.

-- Whom a text names, however it is written: without regard to case, blanks around it, and forms of the same characters.
create or replace function same_person(p_name text) returns text
    language sql immutable
as $$ select lower(normalize(trim(p_name), NFKC)) $$;

-- Initiator, subject, parties, editors and who supplied input; and so nobody who acts for them.
create or replace function is_excluded(who principals, asked approval_requests) returns boolean
    language sql immutable
as $$
    select who.id = any (asked.excluded) or exists (select from unnest(asked.excluded_people) x
        where same_person(x) in (same_person(who.external_id), same_person(who.name)))
$$;

-- The roles that may decide now: those asked first, and those of every escalation whose time has come. Time alone widens
-- them, so no job has to run for it.
create or replace function deciding_roles(asked approval_requests) returns text[]
    language sql volatile
as $$
    select asked.roles || array(
        select json_array_elements_text(level -> 'roles') from json_array_elements(asked.escalations) level
        where asked.opened_at + (level ->> 'after_seconds')::double precision * interval '1 second' <= clock_timestamp())
$$;

-- Whether every action asked for is of a type that the person's own limits name, and its amounts are within them; a type
-- or currency that they do not name they do not cover.
create or replace function within_limits(who principals, asked approval_requests) returns boolean
    language sql immutable
as $$
    select who.limits is null or not exists (
        select from json_array_elements(asked.amounts) amount
        where case
            when amount ->> 'minor' is null then who.limits -> (amount ->> 'action_type') is null
            else coalesce((who.limits -> (amount ->> 'action_type') ->> (amount ->> 'currency'))::bigint, -1)
                < abs((amount ->> 'minor')::bigint)
        end)
$$;

-- Whether this person may decide on it by whatever role: what a role, lent or held, cannot change.
create or replace function is_unbiased(who principals, asked approval_requests) returns boolean
    language sql immutable
as $$
    select who.kind = 'human' and who.disabled_at is null and not is_excluded(who, asked) and within_limits(who, asked)
$$;

-- The loans of a role that this person may use on it now: of people who hold the role and could decide with it themselves.
create or replace function usable_grants(who principals, asked approval_requests) returns setof role_grants
    language sql volatile
as $$
    select g.* from role_grants g join principals lender on lender.id = g.giver
    where g.grantee = who.id and g.revoked_at is null and clock_timestamp() >= g.starts_at and clock_timestamp() < g.ends_at
      and g.role = any (lender.roles) and is_unbiased(lender, asked)
$$;

-- The roles this person holds for this decision: their own, and those that somebody lent them who could decide it too.
create or replace function held_roles(who principals, asked approval_requests) returns text[]
    language sql volatile
as $$ select who.roles || array(select g.role from usable_grants(who, asked) g) $$;

-- Whether this person's vote counts on this approval request now.
create or replace function may_vote(who principals, asked approval_requests) returns boolean
    language sql volatile
as $$ select is_unbiased(who, asked) and held_roles(who, asked) && deciding_roles(asked) $$;

-- In whose place this person may decide, where it takes a role that was lent to them.
create or replace function lenders(who principals, asked approval_requests) returns uuid[]
    language sql volatile
as $$
    select array(
        select distinct g.giver from usable_grants(who, asked) g where g.role = any (deciding_roles(asked)) order by g.giver)
$$;

-- The people on whose authority it is approved now. Whoever votes by a lent role votes in the lender's place: however many
-- hold a loan of one role, they and its lender are one voice, so that nobody makes up a quorum by lending.
create or replace function approving(asked approval_requests) returns uuid[]
    language sql volatile
as $$
    select array(
        select distinct coalesce(v.in_place_of, v.voter)
        from approval_votes v join principals who on who.id = v.voter
        where v.approval_id = asked.id and v.vote = 'approve'
          and v.proposal_hash = asked.proposal_hash and v.review_hash = asked.review_hash and is_unbiased(who, asked)
          and case when v.in_place_of is null then who.roles && deciding_roles(asked)
              else v.in_place_of = any (lenders(who, asked)) end)
$$;
