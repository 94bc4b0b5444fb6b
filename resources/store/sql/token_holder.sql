-- Who holds this token.
select principal_id, kind, name, roles from token_holder(:token)
