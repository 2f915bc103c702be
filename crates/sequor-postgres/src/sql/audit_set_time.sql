-- How long a check may take, in milliseconds: longer than a command.
SELECT set_config('statement_timeout', $1, true);
