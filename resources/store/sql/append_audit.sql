-- Ledger events by this role's own hand; time, role, seq and chain are stamped in the database.
select count(*) from append_audit(cast(:streams as text[]), cast(:types as text[]), cast(:actors as text[]), cast(:payloads as bytea[]))
