-- Says that runner $1 is alive for $2 milliseconds: how many are.
SELECT sequor.check_in($1, $2);
