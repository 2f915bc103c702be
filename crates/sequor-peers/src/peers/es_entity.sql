-- The two tables that es-entity wants for an entity without columns of its own.
CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    created_at timestamptz NOT NULL
);

CREATE TABLE account_events (
    id uuid NOT NULL REFERENCES accounts (id),
    sequence integer NOT NULL,
    event_type varchar NOT NULL,
    event jsonb NOT NULL,
    context jsonb,
    recorded_at timestamptz NOT NULL,
    UNIQUE (id, sequence)
);
