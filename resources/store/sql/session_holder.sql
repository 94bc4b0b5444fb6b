-- Who holds this live session.
select principal_id, kind, name, roles, expires_at from session_holder(:secret)
