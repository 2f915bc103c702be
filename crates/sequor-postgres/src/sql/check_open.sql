-- Fails where the transaction is over, failed, speaks for another tenant than $1, or where what it
-- wrote last, command $2, is not there any more.
SELECT sequor.check_open($1, $2);
