-- For whom. A UUID as sequor prints it, hence no quotes in it; without parameters, so that it
-- travels with BEGIN.
SET LOCAL sequor.tenant = '{tenant}';
