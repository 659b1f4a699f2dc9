-- What a ledger file says beyond what movements and entries show, and the new parameters of full exports
-- (docs/spec/imports.md, docs/spec/exports.md).
--
-- A field of a FEC is stored only where it differs from the field that the ledger would give. So a ledger that comes
-- from nowhere else pays nothing: a null takes no bytes, and these columns have no default. `filed` is json, not jsonb:
-- COPY then writes it as it is stored.

-- The number of an entry (EcritureNum): as filed, or given when the entry is validated. Null: a draft without one, or a
-- FEC imported before this migration.
alter table entries add column number text check (number <> '');

-- FEC columns by name: of all lines of the entry, and of a line where it differs from those of its entry.
alter table entries add column filed json;
alter table movements add column filed json;

-- The place of a movement in the file that its exercice was imported from. Null: its id. Only lines that a later import
-- inserts or moves have one, between those of their neighbours.
alter table movements add column place numeric;

-- Names of the columns beyond the standard's, in the order of the file. Null: not imported from a FEC, or before this
-- migration.
alter table exercices add column filed_columns text[];
-- Whether the lines of some entry are scattered over the file, so that its order is not that of entries.
alter table exercices add column scattered boolean not null default false;

-- CompteNum and CompteLib; of an account of a supplier, customer or employee those of its collective account, with its
-- own CompAuxNum and CompAuxLib. Both numbers identify the account in later files.
alter table accounts
  add column filed_number text,
  add column filed_name text,
  add column auxiliary_number text check (auxiliary_number <> ''),
  add column auxiliary_name text,
  add check ((filed_number is null) = (filed_name is null)),
  add check (auxiliary_number is null or filed_number is not null),
  add check ((auxiliary_number is null) = (auxiliary_name is null));
create unique index accounts_as_filed on accounts (schema_id, folder_id, filed_number, auxiliary_number)
  nulls not distinct where filed_number is not null;

-- The last number of an entry by journal and exercice, from the first one that is given on (see functions/numbers.sql).
create table entry_numbers (
  schema_id id not null,
  folder_id id not null,
  exercice_id id not null,
  journal_id id not null,
  last bigint not null,
  primary key (schema_id, folder_id, exercice_id, journal_id),
  foreign key (schema_id, folder_id, exercice_id) references exercices on delete cascade,
  foreign key (schema_id, folder_id, journal_id) references journals on delete cascade
);
alter table entry_numbers enable row level security;
create policy tenant on entry_numbers using (schema_id = tenant());
grant select on entry_numbers to grandlivre_service;

-- Entries that are validated already. Those of a FEC keep null: their file had numbers, which --replace brings back;
-- until then exports number them from 1, so the others of their journal follow. No ledger version: no export before
-- shows a number.
alter table entries disable trigger user;
update entries e set number = n.place::text
  from (select schema_id, folder_id, id, source, row_number() over (
          partition by schema_id, folder_id, exercice_id, journal_id
          order by source = 'FEC' desc, validated_at, id) as place
        from entries where validated_at is not null) n
  where (e.schema_id, e.folder_id, e.id) = (n.schema_id, n.folder_id, n.id) and n.source <> 'FEC';
alter table entries enable trigger user;

create or replace function number_entries() returns trigger language plpgsql as 'begin return null; end';
create trigger number_insert after insert on entries referencing new table as changed
  for each statement execute function number_entries();
create trigger number_update after update on entries referencing old table as former new table as changed
  for each statement execute function number_entries();

create or replace function refuse_other_number() returns trigger language plpgsql as 'begin return null; end';
create trigger refuse_other_number before update of number, journal_id, exercice_id on entries for each row
  when (old.number is not null and (new.number is distinct from old.number
    or (new.exercice_id, new.journal_id) <> (old.exercice_id, old.journal_id)))
  execute function refuse_other_number();

-- JournalLib.
alter table journals add column filed_name text;

alter table exports
  add column compression text check (compression in ('gzip', 'zstd')),
  add column encoding text check (encoding in ('utf-8')),
  add column columns text check (columns in ('extended')),
  -- The last day of the exercice, which the name of a FEC says. A file may outlive its exercice.
  add column exercice_end date,
  -- The file as stored; `bytes` and `sha256` are its content's.
  add column file_bytes bigint,
  add column file_sha256 text check (file_sha256 ~ '^[0-9a-f]{64}$'),
  -- What the file leaves out or alters: counts by name.
  add column notes json;

alter table exports drop constraint exports_format_check,
  add constraint exports_format_check check (format in ('JSON', 'TRA', 'FEC', 'CSV', 'PARQUET'));

-- The names of an entry other than its id (entries_named). Invoice numbers that differ in their last character share a
-- key: PostgreSQL stores equal keys once, so the index takes 10 bytes for a movement instead of 38, and a look-up compares
-- some tens of movements. A hash bounds the key. Partner ids of more than 255 characters are not looked up: an index
-- refuses texts of more than 2,704 bytes.
create index movements_by_invoice_number on movements (folder_id, hashtext(left(invoice_number, -1)))
  where invoice_number <> '';
create index entries_by_partner_id on entries (schema_id, folder_id, (partner_metadata ->> 'partnerId'))
  where length(partner_metadata ->> 'partnerId') <= 255;

create or replace function entries_named(of_folder bigint, name text, drafts boolean, at_most integer)
  returns table (id bigint, exercice_id bigint)
  language sql as 'select null::bigint, null::bigint';

-- functions: sha256 45bff663670fd77f396403bcff4ac27e7a28e994be5e64214bd789532bfb1dcd
