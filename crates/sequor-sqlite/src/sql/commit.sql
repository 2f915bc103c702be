-- The end of a batch whose rows travelled in the same trip.
COMMIT;
