-- The highest position and command number that were ever drawn. AUTOINCREMENT remembers them
-- when rows are deleted; the tables are asked as well, in case somebody emptied its memory.
SELECT
    max(
        coalesce((SELECT max(position) FROM main.events), 0),
        coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'events'), 0)
    ),
    max(
        coalesce((SELECT max(number) FROM main.commands), 0),
        coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = 'commands'), 0)
    );
