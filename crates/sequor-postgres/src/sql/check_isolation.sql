-- At which level a statement of ours would run that comes without BEGIN.
SELECT current_setting('default_transaction_isolation');
