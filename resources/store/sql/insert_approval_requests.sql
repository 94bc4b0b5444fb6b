-- Ask: the review document is stored as it will be shown, and the request points to what stands for this round. Whoever
-- edited the proposal is excluded as well, by the table's trigger.
with asked as (
    insert into approval_requests (id, request_id, revision, round, proposal_hash, review_document, review_hash, tier, roles, quorum,
        excluded, excluded_people, opened_at, expires_at, remind_after, amounts, escalations)
    select q.approval_id, q.id, q.revision, q.round, q.proposal_hash, q.document, q.review_hash, q.tier,
        array(select json_array_elements_text(cast(q.roles as json))), q.quorum, array[q.initiator],
        array(select json_array_elements_text(cast(q.people as json))), clock_timestamp(), clock_timestamp() + q.expires_after,
        q.remind_after, cast(q.amounts as json), cast(q.escalations as json)
    from unnest(cast(:approval_ids as uuid[]), cast(:ids as uuid[]), cast(:revisions as integer[]), cast(:rounds as integer[]),
        cast(:proposal_hashes as bytea[]), cast(:documents as bytea[]), cast(:review_hashes as bytea[]), cast(:tiers as text[]),
        cast(:roles as text[]), cast(:quorums as integer[]), cast(:initiators as uuid[]), cast(:people as text[]),
        cast(:expires_after as interval[]), cast(:remind_after as interval[]), cast(:amounts as text[]),
        cast(:escalations as text[]))
        as q (approval_id, id, revision, round, proposal_hash, document, review_hash, tier, roles, quorum, initiator, people, expires_after,
            remind_after, amounts, escalations)
    returning id, request_id
)
update requests r set approval_id = asked.id from asked where r.id = asked.request_id returning r.id
