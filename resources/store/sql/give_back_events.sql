-- Let claimed events be claimed again after their waits; ids not returned were claimed by somebody else meanwhile.
select give_back_events(:token, cast(:ids as uuid[]), cast(:waits as interval[]), cast(:sent as boolean[]))
