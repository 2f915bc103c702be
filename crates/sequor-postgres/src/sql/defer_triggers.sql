-- What comes next may be put off until COMMIT again.
SET CONSTRAINTS ALL DEFERRED;
