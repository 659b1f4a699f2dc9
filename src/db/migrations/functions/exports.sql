-- Functions of the table of full exports.

-- The state of an export that has ended is final.
create or replace function exports_end_once() returns trigger
  language plpgsql
as $$
begin
  raise check_violation using message = format('export %s is %s, which is final', old.id, old.state);
end $$;

-- Retention visits one tenant after another. Across tenants it may only learn which ones exist.
create or replace function tenants_with_exports() returns setof bigint
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select distinct e.schema_id::bigint from exports e;
  end;

revoke all on function tenants_with_exports from public;
grant execute on function tenants_with_exports to grandlivre_service;
