-- Add fields to a request that needs review; the database holds it to who may, to adding only, and to the revision seen.
select supply_input(:session, :request_id, :revision, :payload, :reason)
