-- Erasure of folders, firms and third parties (src/erasure/erase.ts): what was begun and not ended goes on in the next run
-- of its command.
create table erasures (
  kind text not null check (kind in ('folder', 'firm', 'partner')),
  id id not null,
  -- Of a folder or firm.
  of_schema id,
  -- With which the folder went.
  of_firm id,
  -- Of a third party.
  code text,
  begun_at timestamp(0) with time zone not null default now(),
  ended_at timestamp(0) with time zone,
  -- Rows that went, by their table; files as `files`.
  backups_until date,
  gone json not null default '{}',
  -- Of a folder, whose files lie in the store by these ids.
  export_ids text[] not null default '{}',
  primary key (kind, id)
);
-- For staff alone.
alter table erasures enable row level security;

create or replace function erased_folders() returns bigint[] language sql return '{}'::bigint[];

-- Last, because every request reads this table.
alter table folders add column erased_at timestamp(0) with time zone;
create index folders_erased on folders (id) where erased_at is not null;
-- An erased folder is there for no request from here on; its rows go step by step.
alter policy tenant on folders using (schema_id = tenant() and erased_at is null);

-- functions: sha256 c4c693cf0f344e8cb86c4d7ba5e6a9156c2a6200002f59ce6ed353b67a811581
