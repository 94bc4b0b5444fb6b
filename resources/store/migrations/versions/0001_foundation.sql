-- The tables of schema failsafe. Constraints here repeat what the code promises, so that neither can drift alone.

create table principals (
    id              uuid primary key default gen_random_uuid(),
    kind            text not null check (kind in ('human', 'service')),
    name            text not null unique check (length(name) between 1 and 200),
    external_id     text unique check (length(external_id) between 1 and 200), -- who it is elsewhere: compared with subjects and payees
    roles           text[] not null default '{}',
    limits          json,                                -- {action type: {currency: minor units}}; null: none beyond the roles
    credential_hash bytea not null unique check (octet_length(credential_hash) = 32), -- sha256 of a generated token
    created_at      timestamptz not null default clock_timestamp(),
    disabled_at     timestamptz
);

create table sessions (
    secret_hash  bytea primary key check (octet_length(secret_hash) = 32),
    principal_id uuid not null references principals,
    created_at   timestamptz not null default clock_timestamp(),
    expires_at   timestamptz not null check (expires_at > created_at)
);

-- Somebody acts in another's role for a time. It never reaches further than the giver's own rights.
create table role_grants (
    id         uuid primary key default gen_random_uuid(),
    giver      uuid not null references principals,
    grantee    uuid not null references principals check (grantee <> giver),
    role       text not null check (length(role) between 1 and 60),
    starts_at  timestamptz not null,
    ends_at    timestamptz not null check (ends_at > starts_at),
    reason     text not null check (length(reason) between 1 and 500),
    revoked_at timestamptz
);
create index role_grants_by_grantee on role_grants (grantee);

-- A workflow's window rule is fixed by its first request: a batch key must mean one window for ever.
create table workflows (
    name       text primary key check (name ~ '^[a-z][a-z0-9_]{0,59}$'),
    batch_kind text not null check (batch_kind in ('day', 'hour')),
    batch_zone text not null check (batch_kind = 'day' or batch_zone = 'UTC'),
    since      date not null,
    created_at timestamptz not null default clock_timestamp()
);

-- What each workflow can do and through which provider, as its last run declared it.
create table action_types (
    workflow    text not null references workflows,
    action_type text not null,
    provider    text not null,
    primary key (workflow, action_type)
);

create table requests (
    id                    uuid primary key,
    workflow              text not null references workflows,
    workflow_version      text not null check (length(workflow_version) between 1 and 60),
    tenant                text not null default '' check (length(tenant) <= 60),
    operation_id          text not null check (length(operation_id) between 1 and 255 and operation_id !~ '[[:cntrl:]]'),
    initiator             uuid not null references principals,
    subject               text check (length(subject) between 1 and 200),
    authorization_context json not null,          -- the initiator's roles as they were at intake
    payload               bytea not null check (octet_length(payload) <= 1048576), -- as received
    payload_fingerprint   bytea not null check (octet_length(payload_fingerprint) = 32),
    batch_key             text not null,
    state                 text not null default 'received',
    last_event            text not null default 'received',
    state_seq             integer not null default 1 check (state_seq > 0),
    revision              integer not null default 1 check (revision > 0), -- the proposal revision wanted or standing
    round                 integer not null default 1 check (round > 0),    -- raised when the same proposal is judged anew
    approval_id           uuid,                                            -- the approval request that stands for this round
    rechecked_until       timestamptz,                                     -- policy and preconditions agreed; good until then
    lease_token           uuid,
    lease_until           timestamptz,
    lease_alone           boolean not null default false,
    attempts              integer not null default 0 check (attempts >= 0),
    crash_count           integer not null default 0 check (crash_count >= 0),
    lone_crash_count      integer not null default 0 check (lone_crash_count between 0 and crash_count),
    next_eligible_at      timestamptz not null,
    cancel_requested_at   timestamptz,
    reason                text check (length(reason) <= 500), -- why it is parked or how it ended, for people
    trace_id              text not null check (length(trace_id) = 32 and trace_id !~ '[^0-9a-f]'),
    received_at           timestamptz not null,
    closed_at             timestamptz,
    unique (tenant, workflow, operation_id),
    constraint a_lease_has_a_token_and_an_end check ((lease_token is null) = (lease_until is null)),
    constraint closed_exactly_when_terminal check (
        (closed_at is not null) = (state in ('completed', 'rejected', 'expired', 'cancelled', 'failed', 'compensated')))
) with (fillfactor = 45); -- a chunk gives all rows of a page a new version at once: room for each on the same page

-- No index knows a state, so that a step from one open state to the next touches none; queries of open requests say
-- `closed_at is null` as well.
create index requests_open on requests (workflow, batch_key, id) where closed_at is null;
create index requests_by_batch on requests (workflow, batch_key, id); -- by id, so that whichever index is taken, pages come in order

-- One row a model output. A malformed output and an abstention have no canonical form, so nothing can be approved of them.
create table proposals (
    request_id     uuid not null references requests,
    revision       integer not null,
    kind           text not null check (kind in ('proposal', 'abstention', 'malformed')),
    output         bytea not null,                -- what the model said, before anything judged it
    canonical      bytea,
    hash           bytea unique check (octet_length(hash) = 32),
    model          text not null,
    prompt_version text not null,
    edited_by      uuid references principals,    -- the reviewer who changed parameters of the revision before
    created_at     timestamptz not null default clock_timestamp(),
    primary key (request_id, revision),
    constraint only_a_proposal_has_a_hash check ((kind = 'proposal') = (canonical is not null) and (canonical is null) = (hash is null))
);

create table findings (
    request_id    uuid not null,
    revision      integer not null,
    round         integer not null,
    verdict       text not null check (verdict in ('passed', 'review', 'refused')),
    items         json not null,
    weakest_trust text not null check (weakest_trust in ('record', 'principal', 'untrusted')),
    parties       text[] not null default '{}',
    created_at    timestamptz not null default clock_timestamp(),
    primary key (request_id, revision, round),
    foreign key (request_id, revision) references proposals
);

create table assessments (
    request_id     uuid not null,
    revision       integer not null,
    round          integer not null,
    tier           text not null check (tier in ('low', 'medium', 'high', 'critical')),
    decision       text not null check (decision in ('auto', 'review', 'refuse')),
    mode           text not null check (mode in ('live', 'shadow')),
    reasons        json not null,
    demand         json,
    policy_version text not null,
    policy_hash    bytea not null check (octet_length(policy_hash) = 32),
    created_at     timestamptz not null default clock_timestamp(),
    primary key (request_id, revision, round),
    foreign key (request_id, revision) references proposals,
    constraint a_review_states_its_demand check ((decision = 'review') = (demand is not null))
);

create table claims (
    workflow   text not null,
    kind       text not null,
    value_hash bytea not null check (octet_length(value_hash) = 32),
    request_id uuid not null references requests,
    primary key (workflow, kind, value_hash)
);
create index claims_by_request on claims (request_id);

-- Values that a completed request of the workflow has used: what is not here is new, and policy may care.
create table known_values (
    workflow   text not null,
    path       text not null,
    value_hash bytea not null check (octet_length(value_hash) = 32),
    primary key (workflow, path, value_hash)
);

create table approval_requests (
    id              uuid primary key default gen_random_uuid(),
    request_id      uuid not null,
    revision        integer not null,
    round           integer not null,
    proposal_hash   bytea not null check (octet_length(proposal_hash) = 32),
    review_document bytea not null,
    review_hash     bytea not null check (octet_length(review_hash) = 32),
    tier            text not null,
    roles           text[] not null check (cardinality(roles) > 0),
    quorum          integer not null check (quorum > 0),
    excluded        uuid[] not null,               -- principals that may not vote: the initiator
    excluded_people text[] not null,               -- external ids that may not vote: subject and parties
    amounts         json not null default '[]',    -- [{action_type, currency, minor}] held against a voter's own limits; no amount: the type alone
    escalations     json not null default '[]',    -- [{after_seconds, roles}] that widen who may decide as time passes
    remind_after    interval check (remind_after > interval '0'),
    opened_at       timestamptz not null,
    expires_at      timestamptz not null check (expires_at > opened_at),
    unique (request_id, revision, round),
    foreign key (request_id, revision) references proposals
);
create index approval_requests_by_expiry on approval_requests (expires_at);

create table approval_votes (
    approval_id   uuid not null references approval_requests,
    voter         uuid not null references principals,
    vote          text not null check (vote in ('approve', 'deny')),
    reason        text not null default '' check (length(reason) <= 2000),
    proposal_hash bytea not null,
    review_hash   bytea not null,
    cast_at       timestamptz not null,
    in_place_of   uuid references principals,      -- who lent the role by which the voter decided; null: their own
    primary key (approval_id, voter)               -- one vote a person
);

create table approval_resolutions (
    approval_id uuid primary key references approval_requests,
    outcome     text not null check (outcome in ('released', 'denied', 'expired', 'voided', 'cancelled')),
    resolved_at timestamptz not null,
    consumed_at timestamptz check (consumed_at is null or outcome = 'released')
);

-- What was announced about an approval request, once each.
create table approval_notices (
    approval_id uuid not null references approval_requests,
    kind        text not null check (kind in ('reminder', 'escalated')),
    level       integer not null,
    noticed_at  timestamptz not null,
    primary key (approval_id, kind, level)
);

create table effects (
    idempotency_key    text primary key check (length(idempotency_key) between 1 and 255),
    request_id         uuid not null references requests,
    revision           integer not null,
    action_id          text not null,
    action_type        text not null,
    ordinal            integer not null check (ordinal > 0),
    intent             integer not null check (intent > 0), -- rises when a redrive finds the last one refused or fenced
    round              integer not null,           -- the request's round that started it
    kind               text not null check (kind in ('forward', 'compensation')),
    provider           text not null,
    proposal_hash      bytea not null,
    parameters_hash    bytea not null check (octet_length(parameters_hash) = 32),
    recovery           json not null,              -- how to undo it, written before it is sent
    state              text not null check (state in ('intended', 'in_flight', 'done', 'refused', 'unknown', 'fenced', 'late')),
    lease_token        uuid,
    attempts           integer not null default 1 check (attempts > 0),
    first_sent_at      timestamptz not null,
    started_at         timestamptz not null,
    outcome_at         timestamptz,
    provider_reference text,
    result             json,
    error              text check (length(error) <= 500),
    unique (request_id, action_id, intent, kind)
) with (fillfactor = 50); -- as requests
create index effects_unsettled on effects (request_id) where state in ('in_flight', 'unknown');
create index effects_in_flight on effects (provider) where state = 'in_flight';

create table outbox (
    id            uuid primary key default gen_random_uuid(),
    aggregatetype varchar(255) not null,
    aggregateid   varchar(255) not null,
    type          varchar(255) not null,
    payload       jsonb not null,
    aggregate_seq bigint not null,
    created_at    timestamptz not null default clock_timestamp(),
    claim_token   uuid,
    claim_until   timestamptz,
    attempts      integer not null default 0,
    published_at  timestamptz,
    parked_at     timestamptz,
    unique (aggregatetype, aggregateid, aggregate_seq)
);
create index outbox_open on outbox (created_at, id) where published_at is null and parked_at is null;

create table dead_letters (
    id         uuid primary key default gen_random_uuid(),
    request_id uuid not null references requests,
    step       text not null,
    failure    text not null check (length(failure) <= 2000),
    trace_id   text not null,
    opened_at  timestamptz not null default clock_timestamp(),
    closed_at  timestamptz,
    closed_by  uuid references principals,
    resolution text check (length(resolution) <= 2000),
    constraint closed_by_somebody_with_a_resolution check (
        (closed_at is null) = (closed_by is null) and (closed_at is null) = (resolution is null))
);
create unique index one_open_dead_letter_a_request on dead_letters (request_id) where closed_at is null;

-- One row a provider, shared by every process: its limits, the breaker, and the credit for repeated calls.
create table providers (
    name                 text primary key check (length(name) between 1 and 200),
    max_in_flight        integer check (max_in_flight > 0), -- null: no limit of its own
    per_second           real check (per_second > 0),       -- null: no limit of its own
    tokens               real not null default 1,           -- starts that per_second allows now
    refilled_at          timestamptz not null default clock_timestamp(),
    consecutive_failures integer not null default 0,        -- of transport; a business refusal is an answer
    opens                integer not null default 0,        -- how often the breaker opened since the last success
    open_until           timestamptz,                       -- set: the breaker is open, then one probe is let through
    probe_until          timestamptz,                       -- a probe is under way until then
    retry_credit         real not null default 20           -- what repeated calls may still use up
);

create table pauses (
    scope     text not null check (scope in ('everything', 'workflow', 'action_type', 'provider')),
    name      text not null check ((scope = 'everything') = (name = '*')),
    paused_at timestamptz not null default clock_timestamp(),
    paused_by uuid not null references principals,
    reason    text not null check (length(reason) between 1 and 500),
    primary key (scope, name)
);

create table batches (
    workflow       text not null references workflows,
    batch_key      text not null,
    last_opened_at timestamptz,
    idle_runs      integer not null default 0,
    reported_at    timestamptz,                    -- when its assets were last materialised
    reported_seq   bigint not null default 0,      -- sum of state_seq at that time: any later change shows
    reported_unfinished bigint not null default 0, -- requests not terminal then; once none is, nothing can change
    primary key (workflow, batch_key)
);

-- Several runs may live on one batch, so each has a heartbeat of its own.
create table batch_runs (
    run_id    text primary key,
    workflow  text not null,
    batch_key text not null,
    opened_at timestamptz not null default clock_timestamp(),
    beat_at   timestamptz not null default clock_timestamp(),
    moved     bigint not null default 0,           -- requests its steps moved; a run that moved none was idle
    closed_at timestamptz
);

create table audit_heads (
    stream text primary key check (length(stream) between 1 and 200),
    seq    bigint not null,
    hash   bytea not null check (octet_length(hash) = 32)
) with (fillfactor = 45); -- as requests

create table audit_events (
    stream  text not null,
    seq     bigint not null check (seq > 0),
    type    text not null check (type ~ '^[a-z_]+(\.[a-z_]+)+$'),
    at      text not null check (at ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$'), -- text, because it is hashed
    role    text not null check (role !~ '[[:cntrl:]]'),
    actor   text not null check (actor !~ '[[:cntrl:]]'),
    payload bytea not null,
    hash    bytea not null check (octet_length(hash) = 32),
    primary key (stream, seq)
);
