-- What a stream says its last event is.
select seq, hash from audit_heads where stream = :stream
