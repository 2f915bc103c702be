-- Runs the constraint triggers that were put off until COMMIT, while their tenant is known.
SET CONSTRAINTS ALL IMMEDIATE;
