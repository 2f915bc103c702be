-- Comes before the snapshot is taken: no month is dropped from here on, which snapshots do not see.
-- It holds up nobody but who drops one.
LOCK TABLE sequor.idempotency_keys_archive IN ACCESS SHARE MODE;
