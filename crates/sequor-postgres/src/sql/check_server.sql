-- Whether sequor can be installed here.
SELECT current_setting('server_version_num')::integer, current_setting('server_encoding');
