-- Says that runner $3 of release $2 of projection $1 is alive for $4 milliseconds: how many are.
SELECT sequor.check_in($1, $2, $3, $4);
