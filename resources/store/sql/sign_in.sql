-- A session secret for a token.
select secret, principal_id, name, roles, expires_at from sign_in(:token)
