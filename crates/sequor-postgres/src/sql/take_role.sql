-- From here on user SQL may run: it owns nothing and sees one tenant.
SET LOCAL ROLE sequor_app;
