-- One snapshot for all that follows, in which nothing can be written.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
