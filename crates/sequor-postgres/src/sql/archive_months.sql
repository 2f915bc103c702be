-- The months that are archived.
SELECT month, keys, digest FROM sequor.archive_months();
