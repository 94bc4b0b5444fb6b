-- One vote on what was shown; the database recounts and resolves.
select outcome, votes_for, votes_needed from cast_vote(:session, :approval, :vote, :proposal_hash, :review_hash, :reason)
