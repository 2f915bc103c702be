-- Into how many partitions ($1) a store that is about to be created spreads its tenants.
SELECT set_config('sequor.partitions', $1, false);
