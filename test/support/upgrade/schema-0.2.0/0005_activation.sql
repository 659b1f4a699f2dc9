-- The first call of a token is told with an event, and had to wait for whoever was writing events of the schema: for 5 s
-- behind a seed of 500,000 movements. The few connections of a process are those of all tenants, so eight such calls kept
-- everybody out.

-- Leaves it to a later call where that takes longer than a moment. The update comes before the lock on the events, in its
-- trigger: the order in which a revocation takes the two.
create function activate(of_schema bigint, token bigint) returns boolean
  language plpgsql volatile set lock_timeout = '250ms'
as $$
begin
  update tokens t set activated_at = now()
  where t.schema_id = of_schema and t.id = token and t.activated_at is null;
  return true;
exception when lock_not_available then
  return false;
end $$;

-- As before, but for `activated`, which is decided before the call is counted: nobody waits while a window is locked.
create or replace function enter(secret_hash bytea, token_hash bytea, window_ms integer)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint,
    requests integer, window_started_at timestamptz
  )
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    with known as materialized (
      select c.*,
             case when c.token_id is not null and not c.activated and c.disconnected_reason is null
               then activate(c.schema_id, c.token_id) end as activated_now
      from caller(enter.secret_hash, enter.token_hash) c
    ), counted as (
      insert into rate_windows as w (schema_id, token_id, started_at, requests)
      select k.schema_id, k.token_id, now(), 1 from known k where k.token_id is not null
      on conflict (schema_id, token_id) do update set
        started_at = case when w.started_at + enter.window_ms * interval '1 ms' <= now()
          then now() else w.started_at end,
        requests = case when w.started_at + enter.window_ms * interval '1 ms' <= now()
          then 1 else w.requests + 1 end
      returning w.requests, w.started_at
    )
    select k.third_party_id, k.kind, k.disconnected_reason, k.under_maintenance,
           k.token_id, k.schema_id, k.level, k.firm_id, k.folder_id, n.requests, n.started_at
    from known k left join counted n on true;
  end;

revoke all on function activate from public;
