-- One snapshot for all that follows: it is taken by the first statement that reads.
BEGIN DEFERRED;
