-- What may become the mark of partition $1, and who has yet to end.
SELECT candidate, holders FROM sequor.candidate($1);
