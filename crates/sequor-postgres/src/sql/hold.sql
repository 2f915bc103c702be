-- Keeps everybody else from writing a stream, $3 and $4 of tenant $2; waits $1 milliseconds.
SELECT sequor.hold($1, $2, $3, $4);
