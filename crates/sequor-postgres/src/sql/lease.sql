-- Takes or renews for runner $4 the lease of release $2 of projection $1 in partition $3, for $5
-- milliseconds: its term, or NULL.
SELECT sequor.lease($1, $2, $3, $4, $5);
