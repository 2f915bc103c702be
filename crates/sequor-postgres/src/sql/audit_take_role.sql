-- Who may read what all tenants have, and nothing else.
SET LOCAL ROLE sequor_system;
