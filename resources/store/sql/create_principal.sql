-- A new principal and its token, which nobody can read again.
select principal_id, token from create_principal(:kind, :name, :external_id, cast(:roles as text[]))
