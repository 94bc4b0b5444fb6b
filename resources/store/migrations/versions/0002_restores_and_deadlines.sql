-- Epochs: since when the store may be behind what its providers did, because it was restored from a backup.
-- Deadlines: until when a failing step is tried again. Late effects: their undo, once a person asked for it.

create table epochs (
    number    integer primary key check (number >= 0), -- 0: from the first request on
    identity  text not null,                       -- the server, timeline and database it was opened on (store_identity)
    opened_at timestamptz not null default clock_timestamp(),
    opened_by uuid references principals,          -- null: it was noticed by itself
    reason    text not null check (length(reason) between 1 and 500)
);

-- The epoch a request was received in, or the last one for which it was looked up what the request may have done.
alter table requests add column epoch integer not null default 0;

-- Set by the first failed attempt of a step: what would be tried again only after it is a person's.
alter table requests add column retry_until timestamptz;

-- A late effect is undone under its own key when a person wants it: who, and when the next try is due.
alter table effects add column undo_asked_by uuid references principals;
alter table effects add column undo_asked_at timestamptz;
alter table effects add column undo_due_at timestamptz;
alter table effects add column undo_attempts integer not null default 0 check (undo_attempts >= 0); -- failed since it was asked for
create index effects_to_undo on effects (request_id) where state = 'late' and undo_due_at is not null;

-- Later code names what a compensation undoes; what it replaces is called with the others alone, as earlier code does.
drop function if exists start_effects(uuid, text, uuid[], integer[], text[], bytea[], json[]);
drop function if exists note_answers(text, bigint, bigint);

-- The credit for repeated calls grows with time as well, from then on.
alter table providers add column credited_at timestamptz not null default clock_timestamp();

-- Who is compared by `same_person` is one person only if nobody else is written like that.
do $$
declare
    twice text := (select string_agg(p.name, ', ' order by p.name) from principals p where exists (
        select from principals o where o.id <> p.id and lower(normalize(trim(o.external_id), NFKC)) = lower(normalize(trim(p.external_id), NFKC))));
begin
    if twice is not null then
        raise exception using errcode = 'FS420', message = 'the external ids of ' || twice
            || ' differ only in case, blanks or forms of the same characters: give all but one of them another, then upgrade';
    end if;
end
$$;
create unique index principals_by_person on principals (lower(normalize(trim(external_id), NFKC)));

-- Fingerprints by action id of the outside state that was assessed; null where no adapter takes any.
alter table assessments add column snapshots json;

-- What was added to requests that needed review: the revision that begins with it reads this payload. The one that was
-- received stays, with its fingerprint; `supplied` saves the look here to requests that nothing was added to.
create table request_inputs (
    request_id  uuid not null references requests,
    revision    integer not null check (revision > 1), -- begins with it
    supplied_by uuid not null references principals,
    supplied_at timestamptz not null default clock_timestamp(),
    fields      text[] not null check (cardinality(fields) > 0), -- names of what was added
    payload     bytea not null check (octet_length(payload) <= 1048576), -- all of it, with what was added
    primary key (request_id, revision)
);
alter table requests add column supplied boolean not null default false;
