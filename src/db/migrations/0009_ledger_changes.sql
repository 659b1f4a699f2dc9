-- What changed in a ledger, so that a copy of it can be kept up to date without reading it again (docs/spec/changes.md).

-- One row per statement that changed a ledger, with the version that the statement gave its folder.
create table ledger_changes (
  schema_id id not null,
  folder_id id not null,
  version bigint not null,
  -- What `ids` are of. Movements count as their entries. `forgotten`: changes up to this version are not remembered.
  kind text not null check (kind in
    ('entries', 'accounts', 'journals', 'payments', 'axes', 'sections', 'third_parties', 'forgotten')),
  -- Touched by the statement, old and new; may hold more.
  ids int8multirange not null,
  logged_at timestamptz not null default clock_timestamp(),
  primary key (schema_id, folder_id, version),
  foreign key (schema_id, folder_id) references folders on delete cascade
);
create index ledger_changes_by_time on ledger_changes (logged_at) where kind <> 'forgotten';
alter table ledger_changes enable row level security;
create policy tenant on ledger_changes using (schema_id = tenant());
grant select on ledger_changes to grandlivre_service;

-- Digests of the validated movements of an exercice, as lines of NDJSON, by consecutive ranges of entry ids. A range
-- reaches to before the next one's beginning, and the last one to the greatest id.
create table movement_blocks (
  schema_id id not null,
  folder_id id not null,
  exercice_id id not null,
  -- The ledger version, epoch and rendering of these digests, as a cursor.
  cursor text not null,
  version bigint not null,
  first_ids bigint[] not null,
  rows integer[] not null,
  -- 32 bytes of SHA-256 each.
  digests bytea not null,
  primary key (schema_id, folder_id, exercice_id),
  foreign key (schema_id, folder_id, exercice_id) references exercices on delete cascade,
  check (cardinality(rows) = cardinality(first_ids) and length(digests) = 32 * cardinality(first_ids))
);
alter table movement_blocks enable row level security;
create policy tenant on movement_blocks using (schema_id = tenant());
grant select, insert, update, delete on movement_blocks to grandlivre_service;

create or replace function next_ledger_version(of_schema bigint, of_folder bigint) returns bigint
  language sql as 'select 0::bigint';
create or replace function entries_between(
  of_schema bigint, of_folder bigint, first_id bigint, last_id bigint, at_most bigint) returns bigint
  language sql as 'select 0::bigint';
create or replace function coarsened(exact int8multirange) returns int8multirange language sql as 'select exact';
create or replace function cursor_code(
  key bytea, of_schema bigint, of_folder bigint, version bigint, epoch bigint, rendering text) returns text
  language sql as $$select ''$$;
create or replace function ledger_cursor(of_schema bigint, of_folder bigint, version bigint, of_rendering text)
  returns text language sql as $$select ''$$;
create or replace function read_ledger_cursor(cursor text, of_schema bigint, of_folder bigint, current_rendering text)
  returns table (version bigint, refusal text)
  language sql as $$select 0::bigint, ''$$;
create or replace function adopt_rendering(of_process text) returns void language sql as '';
create or replace function note_ledger_change(of_schema bigint, of_folder bigint, version bigint) returns void
  language sql as '';
create or replace function lock_log_of_changes() returns void language sql as '';
create or replace function forget_ledger_changes(before timestamptz, at_most integer) returns bigint
  language sql as 'select 0::bigint';
create or replace function compact_ledger_changes(before timestamptz) returns bigint
  language sql as 'select 0::bigint';
create or replace function publish_ledger_change() returns trigger language plpgsql as 'begin return null; end';

create constraint trigger publish_ledger_change after update on folders deferrable initially deferred for each row
  when (old.ledger_version <> new.ledger_version)
  execute function publish_ledger_change();

-- Which statements are logged. Foreign keys keep what an entry refers to: a new account, journal or payment has no
-- entries yet. Shares of movements have none: a section may come after them.
do $$
declare
  logged record;
begin
  for logged in
    select * from (values
      ('entries', 'entries', 'id', array['insert', 'update', 'delete']),
      ('movements', 'entries', 'entry_id', array['insert', 'update', 'delete']),
      ('accounts', 'accounts', 'id', array['update', 'delete']),
      ('journals', 'journals', 'id', array['update', 'delete']),
      ('payments', 'payments', 'id', array['update', 'delete']),
      ('axes', 'axes', 'id', array['insert', 'update', 'delete']),
      ('sections', 'sections', 'id', array['insert', 'update', 'delete'])
    ) as t (name, kind, ids, operations)
  loop
    for operation in 1 .. cardinality(logged.operations) loop
      -- Replaced, not dropped: exports that read the table go on meanwhile, and the migration does not wait for them.
      execute format('create or replace trigger ledger_version_%1$s after %1$s on %2$I referencing %3$s '
        'for each statement execute function advance_ledger_version(%4$L, %5$L)',
        logged.operations[operation], logged.name,
        case logged.operations[operation] when 'insert' then 'new table as changed' when 'delete' then 'old table as changed'
          else 'old table as former new table as changed' end,
        logged.kind, logged.ids);
    end loop;
  end loop;
end $$;

-- Secrets with which the deliveries of a subscription are signed beside that of its third party
-- (docs/spec/webhooks.md#signing-secrets). A subscription from before this has none: its next delivery gives it one.
create table signing_secrets (
  subscription_id id not null references subscriptions on delete cascade,
  secret_encrypted bytea not null, -- AES-256-GCM under MASTER_KEY
  created_at timestamptz not null default clock_timestamp(),
  retired_at timestamptz, -- null: the newest; otherwise when it no longer signs
  primary key (subscription_id, created_at)
);
create unique index signing_secrets_newest on signing_secrets (subscription_id) where retired_at is null;
alter table signing_secrets enable row level security;
-- Visible to those who see the subscription: its tenant, and the dispatcher.
create policy of_subscription on signing_secrets
  using (exists (select from subscriptions s where s.id = subscription_id));
grant select, insert, update, delete on signing_secrets to grandlivre_service;

-- What an owner looks for among all that was delivered.
create index deliveries_failed on deliveries (subscription_id, id) where state = 'failed';

-- When its owner last asked for a ping.
alter table subscriptions add column pinged_at timestamptz;

-- Numbers of the events of a subscription: 1, 2, 3, ... without gaps (docs/spec/webhooks.md#sequence). They are given
-- under the lock of the subscription's row, and apart from delivering, so that events can be read by number.
alter table subscriptions
  alter column post_url drop not null, -- null: nothing is posted, its events are read
  add column numbered bigint not null default 0, -- the last number given
  add column collected bigint not null default 0, -- the last number that was put into a delivery, or skipped
  add constraint subscriptions_collected_check check (collected between 0 and numbered);

-- The events of a schema from first_event to last_event that match the subscription have, in the order of their ids,
-- the numbers first_sequence to last_sequence. Counted from the end, as retention deletes the first of them first.
create table sequence_runs (
  schema_id id not null,
  subscription_id id not null references subscriptions on delete cascade,
  first_sequence bigint not null check (first_sequence > 0),
  last_sequence bigint not null,
  first_event bigint not null,
  last_event bigint not null,
  primary key (schema_id, subscription_id, first_sequence),
  -- A subscription for all schemas has its numbers across them.
  unique (subscription_id, first_sequence),
  check (last_sequence - first_sequence between 0 and 999),
  check (last_event - first_event >= last_sequence - first_sequence)
);

-- What a subscription matched before a change of its kinds or folders: valid for numbers up to last_sequence.
create table former_filters (
  schema_id id not null,
  subscription_id id not null references subscriptions on delete cascade,
  last_sequence bigint not null,
  on_events text[] not null,
  folder_ids bigint[] not null,
  primary key (schema_id, subscription_id, last_sequence)
);

do $$
declare
  numbered_table text;
begin
  foreach numbered_table in array array['sequence_runs', 'former_filters']
  loop
    execute format('alter table %I enable row level security', numbered_table);
    execute format('create policy tenant on %I using (schema_id = tenant())', numbered_table);
    execute format('create policy delivering on %I using (delivering())', numbered_table);
    execute format('grant select, insert, update, delete on %I to grandlivre_service', numbered_table);
  end loop;
end $$;

-- Null in deliveries from before events had numbers.
alter table deliveries
  add column first_sequence bigint,
  add column last_sequence bigint,
  add constraint deliveries_sequence_check check (
    (first_sequence is null) = (last_sequence is null) and last_sequence - first_sequence + 1 = events);

create or replace function selects(on_events text[], folder_ids bigint[], event_name text, of_folder bigint)
  returns boolean language sql immutable parallel safe as 'select false';

-- Last: while it is locked, no request enters.
alter table service_state
  -- Rises after a failover that lost commits: nothing that named a state before is honoured.
  add column epoch bigint not null default 1,
  -- Cursors are signed with it. No role but the owner reads this table.
  add column cursor_key bytea not null
    default sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
  add column rendering text not null default '0',
  -- What was logged before has been compacted.
  add column compacted_until timestamptz;

-- functions: sha256 3d84585a89d81ebe7525e505c6ed82f7744ba650055ed941ef4c52c4060ad13b
