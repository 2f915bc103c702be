-- The sequence of positions, as the migrations have made it, where a restore of tables alone has lost
-- it. It begins at 1 then: opening the store says how far to set it.
CREATE SEQUENCE IF NOT EXISTS sequor.positions AS bigint MINVALUE 1 NO CYCLE CACHE 1;
