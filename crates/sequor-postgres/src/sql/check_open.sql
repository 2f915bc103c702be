-- Fails where the transaction is over, failed, or speaks for another tenant than $1.
SELECT sequor.check_open($1);
