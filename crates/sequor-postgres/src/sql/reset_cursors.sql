-- Cursors that were declared WITH HOLD.
CLOSE ALL;
