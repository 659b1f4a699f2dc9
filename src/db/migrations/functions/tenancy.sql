-- Settings of a transaction that row-level security reads to decide which rows are visible.

-- The tenant of the transaction; null if none is set, and null equals nothing.
create or replace function tenant() returns bigint
  language sql stable parallel safe
  return nullif(current_setting('grandlivre.schema_id', true), '')::bigint;

grant execute on function tenant to grandlivre_service;

-- Whether the transaction belongs to the dispatcher or to the retention of events, which work for all tenants, or reads
-- the secrets that sign a ping. No other request uses this setting.
create or replace function delivering() returns boolean
  language sql stable parallel safe
  return coalesce(current_setting('grandlivre.delivering', true) = 'on', false);

grant execute on function delivering to grandlivre_service;

-- The folders that are being erased, whose events are no longer sent or shown. Row-level security hides them from requests.
create or replace function erased_folders() returns bigint[]
  language sql stable security definer set search_path = grandlivre, pg_temp
  return (select coalesce(array_agg(f.id), '{}') from folders f where f.erased_at is not null);

revoke all on function erased_folders from public;
grant execute on function erased_folders to grandlivre_service;
