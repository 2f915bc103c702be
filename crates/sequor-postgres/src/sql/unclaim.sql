-- Lets go of key $2 of tenant $1, under which this transaction has written nothing.
SELECT sequor.unclaim($1, $2);
