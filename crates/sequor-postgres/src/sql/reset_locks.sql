-- Advisory locks of the session.
SELECT pg_advisory_unlock_all();
