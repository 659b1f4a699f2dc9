-- Full exports of a folder: what was asked, how far it is, what became of it. Who works on which of them when is kept by
-- the queue in the schema pgboss (db/queue-schema.ts); this table is what is told to callers, and it has the last word:
-- whoever works on an export writes `where state = 'running' and attempt = <the attempt it took>`, so that a process
-- which lost an export to another one can neither finish it nor move its progress.

create table exports (
  schema_id id not null,
  id text not null check (id ~ '^export_[0-9a-f]{32}$'),
  folder_id id not null,
  -- What was asked.
  version text not null,
  format text not null check (format in ('JSON', 'TRA')),
  exercice_id id,
  period_start date,
  period_end date,
  journal_ids bigint[] not null default '{}', -- ascending, each once; empty: all
  identity text not null check (identity ~ '^[0-9a-f]{64}$'), -- the same for triggers that ask for the same
  -- Of all exports with one identity the one that answers a trigger, for an hour. The unique index below makes two
  -- triggers at the same instant, in whatever processes, agree on one.
  latest boolean not null default true,
  request_id text not null, -- of the trigger
  created_at timestamptz not null default clock_timestamp(),
  -- How far it is.
  state text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed')),
  attempt integer not null default 0, -- counts up whenever a process takes it
  renewed_at timestamptz, -- when the process that has it was last heard of
  rows_total bigint,
  rows bigint not null default 0,
  bytes bigint not null default 0,
  -- What became of it.
  finished_at timestamptz,
  file_key text, -- in the store; null again once the file's time is over
  sha256 text check (sha256 ~ '^[0-9a-f]{64}$'),
  debit numeric(38, 0), -- minor units
  credit numeric(38, 0),
  snapshot_on date, -- the day whose state the file shows
  reason text,
  primary key (schema_id, id),
  foreign key (schema_id, folder_id) references folders,
  check ((period_start is null) = (period_end is null)),
  check (exercice_id is null or period_start is null),
  check ((finished_at is not null) = (state in ('done', 'failed'))),
  check (num_nulls(sha256, debit, credit, snapshot_on) = case when state = 'done' then 0 else 4 end),
  check ((reason is not null) = (state = 'failed')),
  check (file_key is null or state = 'done'),
  check (attempt > 0 or state in ('queued', 'failed'))
);

create unique index exports_latest on exports (schema_id, folder_id, identity) where latest;
create index exports_finished on exports (schema_id, finished_at);

create function exports_end_once() returns trigger
  language plpgsql
as $$
begin
  raise check_violation using message = format('export %s is %s, which is final', old.id, old.state);
end $$;

create trigger end_once before update of state on exports for each row
  when (old.state in ('done', 'failed') and new.state <> old.state)
  execute function exports_end_once();

alter table exports enable row level security;
create policy tenant on exports using (schema_id = tenant());
grant select, insert, update, delete on exports to grandlivre_service;

-- Retention goes from tenant to tenant; that they exist is all it may know across them.
create function tenants_with_exports() returns setof bigint
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select distinct e.schema_id::bigint from exports e;
  end;

revoke all on function tenants_with_exports from public;
grant execute on function tenants_with_exports to grandlivre_service;
