-- The role that the session came with.
RESET ROLE;
