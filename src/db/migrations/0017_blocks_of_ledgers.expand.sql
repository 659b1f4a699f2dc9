-- Digests of whole ledgers (docs/spec/ledgers.md#blocks).

-- Digests of all movements of a folder, drafts among them, as rows of COPY, by consecutive ranges of entry ids; and of
-- its other tables. A range reaches to before the next one's beginning, and the last one to the greatest id.
create table ledger_blocks (
  schema_id id not null,
  folder_id id not null,
  -- The ledger version, epoch and rendering of these digests, as a cursor.
  cursor text not null,
  version bigint not null,
  first_ids bigint[] not null,
  rows integer[] not null,
  -- 32 bytes of SHA-256 each.
  digests bytea not null,
  -- The same, of the other tables in the order of the stream.
  tables bytea not null,
  primary key (schema_id, folder_id),
  foreign key (schema_id, folder_id) references folders on delete cascade,
  check (cardinality(rows) = cardinality(first_ids) and length(digests) = 32 * cardinality(first_ids))
);
alter table ledger_blocks enable row level security;
create policy tenant on ledger_blocks using (schema_id = tenant());
grant select, insert, update, delete on ledger_blocks to grandlivre_service;

-- The version that last changed another table of a ledger than entries and movements; no row: none since this migration.
-- Not in `folders`, since a new column would hold up every request until the end of the migration.
create table table_changes (
  schema_id id not null,
  folder_id id not null,
  version bigint not null,
  primary key (schema_id, folder_id),
  foreign key (schema_id, folder_id) references folders on delete cascade
);
alter table table_changes enable row level security;
create policy tenant on table_changes using (schema_id = tenant());
grant select on table_changes to grandlivre_service;

create or replace function note_table_change(of_schema bigint, of_folder bigint, of_version bigint) returns void
  language sql as '';

-- functions: sha256 5cacccad4fcb3bbd0ae24918625785d947dadc1a2f57a990431bfbad7eec9438
