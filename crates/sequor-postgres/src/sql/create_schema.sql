-- Where everything of sequor lives, the list of its migrations included.
CREATE SCHEMA IF NOT EXISTS sequor;
