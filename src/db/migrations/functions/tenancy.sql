-- Settings of a transaction that row-level security reads: which rows it sees.

-- The tenant of the transaction; null if none is set, and null equals nothing.
create or replace function tenant() returns bigint
  language sql stable parallel safe
  return nullif(current_setting('grandlivre.schema_id', true), '')::bigint;

grant execute on function tenant to grandlivre_service;

-- Whether the transaction is one of the dispatcher or of the retention of events: these work for all tenants. Requests
-- never make this setting.
create or replace function delivering() returns boolean
  language sql stable parallel safe
  return coalesce(current_setting('grandlivre.delivering', true) = 'on', false);

grant execute on function delivering to grandlivre_service;
