-- One message in the outbox for each event, in the same transaction: what a relay will deliver. sequor
-- has the table but no relay yet, hence nobody who writes it, and it shall be compared with this work
-- done. A trigger costs at least what an INSERT inside of the commit's own statement will.
--
-- The id is the command's: it grows with time, as a message's own will, and no command here has
-- more than one event.
CREATE FUNCTION sequor.write_outbox() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO sequor.outbox (
        tenant_id, message_id, partition, position, command_id, topic, message_key, name, payload,
        headers
    )
    SELECT
        event.tenant_id, event.command_id, event.partition, event.position, event.command_id,
        event.aggregate, event.aggregate_id, event.name, event.payload, '{}'
    FROM added AS event;
    RETURN NULL;
END
$$;

CREATE TRIGGER write_outbox
AFTER INSERT ON sequor.events
REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION sequor.write_outbox();
