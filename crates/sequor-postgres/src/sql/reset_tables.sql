-- Tables that would stand before others of the same name.
DISCARD TEMPORARY;
