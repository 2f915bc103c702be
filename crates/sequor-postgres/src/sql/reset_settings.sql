-- Settings that were changed for the session.
RESET ALL;
