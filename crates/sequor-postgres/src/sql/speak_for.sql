-- From here on the transaction runs as user SQL does, and speaks for tenant $1; gone with it.
SELECT set_config('role', 'sequor_app', true), set_config('sequor.tenant', $1, true);
