-- The write lock first: a deferred transaction that reads and then writes fails at once with 517.
BEGIN IMMEDIATE;
