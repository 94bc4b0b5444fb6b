-- Effect, outbox event and audit event of each outcome; keys not returned belonged to a lost lease.
select recorded_key
from record_outcomes(:token, cast(:keys as text[]), cast(:states as text[]), cast(:references as text[]),
    cast(cast(:results as text[]) as json[]), cast(:errors as text[]))
