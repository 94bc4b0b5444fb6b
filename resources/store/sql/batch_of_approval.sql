-- Which batch an approval request belongs to: where a run carries out what it releases.
select workflow, batch_key from approvals_v where approval_id = :approval_id
