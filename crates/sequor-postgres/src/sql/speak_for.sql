-- From here on the transaction speaks for tenant $1; gone with the transaction.
SELECT set_config('sequor.tenant', $1, true);
