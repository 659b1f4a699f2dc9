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

-- Last: while it is locked, no request enters.
alter table service_state
  -- Rises after a failover that lost commits: nothing that named a state before is honoured.
  add column epoch bigint not null default 1,
  -- Cursors are signed with it. No role but the owner reads this table.
  add column cursor_key bytea not null
    default sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
  add column rendering text not null default '0';

-- functions: sha256 dbee887582c1015e207bb67edb6556856f50c0be69dd28ce4b31ab73710b461f
