-- The keys of the partitions' locks, by number.
SELECT array_agg(lock_key ORDER BY partition) FROM sequor.partitions;
