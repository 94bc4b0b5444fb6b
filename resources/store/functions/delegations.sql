-- Delegation: somebody lends a role of their own to another person for a time, on the record. What a loan is worth on a
-- given decision is asked anew at every vote and at every start (eligibility.sql).

-- Lend one of your roles to somebody for a time.
create or replace function delegate_role(p_session text, p_grantee text, p_role text, p_starts timestamptz, p_ends timestamptz, p_reason text)
    returns uuid
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    giver   principals := session_principal(p_session);
    grantee principals;
    made    uuid;
begin
    if giver.kind <> 'human' or (p_role = any (giver.roles)) is not true then
        raise exception '% does not hold the role % and cannot lend it', giver.name, p_role using errcode = 'FS403';
    end if;
    select * into grantee from principals where name = p_grantee and disabled_at is null;
    if grantee.id is null or grantee.kind <> 'human' or grantee.id = giver.id then
        raise exception 'a role is lent to another enabled person; % is none', p_grantee using errcode = 'FS404';
    end if;
    if p_starts is null or p_ends is null or p_ends <= p_starts or p_ends <= clock_timestamp()
        or p_ends > greatest(p_starts, clock_timestamp()) + interval '90 days' then
        raise exception 'a role is lent for a time that ends, at most 90 days after it begins' using errcode = 'FS400';
    end if;
    if coalesce(length(trim(p_reason)), 0) not between 1 and 500 then
        raise exception 'say why the role is lent, in at most 500 characters' using errcode = 'FS400';
    end if;
    perform from principals p where p.id = giver.id for no key update; -- of two who lend the same at once the second sees the first
    if exists (select from role_grants g where g.giver = giver.id and g.grantee = grantee.id and g.role = p_role
        and g.revoked_at is null and g.starts_at < p_ends and p_starts < g.ends_at) then
        raise exception 'the role % is lent to % in this time already; take that back first', p_role, p_grantee using errcode = 'FS420';
    end if;
    insert into role_grants (giver, grantee, role, starts_at, ends_at, reason)
    values (giver.id, grantee.id, p_role, p_starts, p_ends, p_reason) returning id into made;
    perform write_audit(array['system'], array['role.lent'], array['principal:' || giver.id], array[json_bytes(json_build_object(
        'grant', made, 'role', p_role, 'to', grantee.id, 'from', p_starts, 'until', p_ends, 'reason', p_reason))]);
    return made;
end
$$;

-- Take a loan back, as who gave it or as an operator. Updates the row that start_effects holds FOR SHARE: once this
-- commits, nothing starts on a vote that was cast by it.
create or replace function revoke_delegation(p_session text, p_grant uuid) returns boolean
    language plpgsql security definer set search_path = failsafe, pg_temp
as $$
declare
    who principals := session_principal(p_session);
begin
    update role_grants set revoked_at = clock_timestamp()
    where id = p_grant and revoked_at is null and (giver = who.id or 'operator' = any (who.roles));
    if not found then
        return false;
    end if;
    perform write_audit(array['system'], array['role.taken_back'], array['principal:' || who.id],
        array[json_bytes(json_build_object('grant', p_grant))]);
    return true;
end
$$;

-- The loans that the holder of this session gave or got, and for an operator all, the latest first.
create or replace function list_delegations(p_session text)
    returns table (id uuid, role text, giver text, grantee text, starts_at timestamptz, ends_at timestamptz, reason text, revoked_at timestamptz,
        in_force boolean)
    language plpgsql stable security definer set search_path = failsafe, pg_temp
as $$
declare
    who principals := session_principal(p_session);
begin
    return query
    select g.id, g.role, lender.name, borrower.name, g.starts_at, g.ends_at, g.reason, g.revoked_at,
        g.revoked_at is null and clock_timestamp() >= g.starts_at and clock_timestamp() < g.ends_at
            and lender.disabled_at is null and borrower.disabled_at is null and g.role = any (lender.roles)
    from role_grants g join principals lender on lender.id = g.giver join principals borrower on borrower.id = g.grantee
    where g.giver = who.id or g.grantee = who.id or 'operator' = any (who.roles)
    order by g.starts_at desc, g.id;
end
$$;
