-- Who this file is.
SELECT epoch FROM store WHERE id = 1;
