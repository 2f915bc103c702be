-- Who this file is.
SELECT epoch FROM main.store WHERE id = 1;
