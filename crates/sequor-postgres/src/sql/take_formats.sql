-- How the driver reads dates and text, as it asked for when it connected.
SELECT
    set_config('DateStyle', 'ISO, MDY', false), set_config('TimeZone', 'UTC', false),
    set_config('client_encoding', 'UTF8', false), set_config('application_name', 'sequor', false);
