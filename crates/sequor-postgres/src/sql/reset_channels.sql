-- What the session listens to.
UNLISTEN *;
