-- A new revision in place of what was asked; the database checks it as it checks a vote.
select record_edit(:session, :approval, :proposal_hash, :review_hash, :output, :canonical, :hash, :reason)
