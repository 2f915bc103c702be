-- From here on the transaction is the runner's own again, and speaks for no tenant.
SELECT set_config('role', 'none', true), set_config('sequor.tenant', '', true);
