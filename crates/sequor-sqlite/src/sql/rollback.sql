-- The end of a batch that failed on its way.
ROLLBACK;
