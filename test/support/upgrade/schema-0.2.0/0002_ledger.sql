-- A folder's accounting data. Money is in minor units of the folder's currency (cents).

-- Payment modes by their internal code; the names and codes partners see are in formats/mad/payment.ts.
create table payments (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  code text not null,
  primary key (schema_id, folder_id, id),
  foreign key (schema_id, folder_id) references folders
);

create table vat_codes (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  code text not null,
  rate integer not null check (rate between 0 and 10000), -- hundredths of a percent: 2000 is 20 %
  primary key (schema_id, folder_id, id),
  unique (schema_id, folder_id, code),
  foreign key (schema_id, folder_id) references folders
);

create table accounts (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  number text not null check (number ~ '^[0-9A-Z]{1,40}$'),
  name text not null,
  closed boolean not null default false,
  counterpart_account_id id,
  correspondance_account_id id,
  primary key (schema_id, folder_id, id),
  unique (schema_id, folder_id, number),
  foreign key (schema_id, folder_id) references folders,
  foreign key (schema_id, folder_id, counterpart_account_id) references accounts,
  foreign key (schema_id, folder_id, correspondance_account_id) references accounts
);

-- The company behind an account with root 401 or 411.
create table companies (
  schema_id id not null,
  folder_id id not null,
  account_id id not null,
  name text not null,
  siren text check (siren ~ '^\d{9}(\d{5})?$'),
  ceo text,
  payment_id id,
  vat_id id,
  address address,
  ape_producer_id text,
  ape_code text,
  ape_name text,
  ibans text[] not null default '{}',
  contacts jsonb not null default '[]', -- [{firstname, lastname, phoneNumber, role, email}]
  miscellaneous jsonb, -- {referent, language, group, archived}
  primary key (schema_id, folder_id, account_id),
  foreign key (schema_id, folder_id, account_id) references accounts on delete cascade,
  foreign key (schema_id, folder_id, payment_id) references payments,
  foreign key (schema_id, folder_id, vat_id) references vat_codes
);

-- The employee behind an account with root 421.
create table employees (
  schema_id id not null,
  folder_id id not null,
  account_id id not null,
  first_name text,
  last_name text,
  email text,
  phone_number text,
  phone_number_bis text,
  nir text,
  profession text,
  payment_id id,
  address address,
  ibans text[] not null default '{}',
  contacts jsonb not null default '[]',
  miscellaneous jsonb, -- {referent, language, group, archived}
  doubtful_account_id id,
  primary key (schema_id, folder_id, account_id),
  foreign key (schema_id, folder_id, account_id) references accounts on delete cascade,
  foreign key (schema_id, folder_id, payment_id) references payments,
  foreign key (schema_id, folder_id, doubtful_account_id) references accounts
);

create table journals (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  code text not null, -- as its users write it; partners read it as customerReferenceCode
  name text not null,
  type text not null check (type in ('ACH', 'VTE', 'BQ', 'CAISSE', 'A_EXT', 'EXT', 'AN', 'NFD', 'RBAL', 'OD',
    'OD_AUDIT', 'OD_PAIE', 'OD_LET', 'OD_DECL_FISCALE', 'OD_EXC')),
  counterpart_account_id id,
  locked boolean not null default false,
  primary key (schema_id, folder_id, id),
  unique (schema_id, folder_id, code),
  foreign key (schema_id, folder_id) references folders,
  foreign key (schema_id, folder_id, counterpart_account_id) references accounts
);

create table banks (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  rib text,
  iban text not null,
  bic text not null,
  account_id id,
  journal_id id not null,
  is_default boolean not null default false,
  primary key (schema_id, folder_id, id),
  foreign key (schema_id, folder_id) references folders,
  foreign key (schema_id, folder_id, account_id) references accounts,
  foreign key (schema_id, folder_id, journal_id) references journals
);

create table axes (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  code text not null,
  name text not null,
  default_section_id id,
  primary key (schema_id, folder_id, id),
  unique (schema_id, folder_id, code),
  foreign key (schema_id, folder_id) references folders
);

create table sections (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  axis_id id not null,
  code text not null,
  name text not null,
  account_roots text[] not null default '{}',
  closed boolean not null default false,
  primary key (schema_id, folder_id, id),
  unique (schema_id, folder_id, axis_id, code),
  foreign key (schema_id, folder_id, axis_id) references axes
);

alter table axes add foreign key (schema_id, folder_id, default_section_id) references sections
  deferrable initially deferred;

create table exercices (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  start_date date not null,
  end_date date not null,
  lettering text not null default 'MONO' check (lettering in ('MONO', 'MULTI')),
  closed_at timestamptz(0),
  closed_by_id id,
  closed_by_first_name text,
  closed_by_last_name text,
  primary key (schema_id, folder_id, id),
  foreign key (schema_id, folder_id) references folders,
  check (end_date > start_date)
);

-- Sources a validated entry can come from (contract, section 6), as a table so that a mistyped code cannot load.
create table sources (code text primary key);
insert into sources values ('E'), ('M'), ('O'), ('EXT'), ('L'), ('IB'), ('P'), ('AN'), ('OD_TVA'), ('OD_CALC_IS'),
  ('OD_ECART'), ('REM_BQ'), ('RB_MANUEL'), ('WORKSHEET'), ('QUADRA'), ('CEGID'), ('ACD'), ('FEC'), ('EXCEL'),
  ('RB_JDC'), ('RB_QT'), ('RB_SB'), ('RB_FTP'), ('RTVR'), ('QUICK'), ('ABO'), ('PRLV_SEPA'), ('VIRT_SEPA'), ('API');

create table entries (
  schema_id id not null,
  folder_id id not null,
  id id not null,
  exercice_id id not null,
  journal_id id not null,
  date date not null,
  due_date date,
  accounted_at date not null,
  created_at timestamptz(0) not null,
  validated_at date, -- null: awaiting validation (draft)
  source text not null references sources,
  third_party_id id references third_parties, -- the partner that sent it, for source API
  currency text not null check (currency ~ '^[A-Z]{3}$'),
  rate numeric(18, 6), -- only where the currency is not the folder's
  comment text,
  partner_metadata jsonb, -- {partnerId, json}
  attachments jsonb, -- file name -> address
  primary key (schema_id, folder_id, id),
  unique (schema_id, folder_id, exercice_id, id),
  foreign key (schema_id, folder_id, exercice_id) references exercices,
  foreign key (schema_id, folder_id, journal_id) references journals
);

-- The columns that select movements. A month, a source or the drafts cost what they hold, not what the folder holds.
create index entries_by_date on entries (schema_id, folder_id, date);
create index entries_by_accounted_at on entries (schema_id, folder_id, accounted_at);
create index entries_by_created_at on entries (schema_id, folder_id, created_at);
create index entries_by_source on entries (schema_id, folder_id, source);
create index entries_draft on entries (schema_id, folder_id) where validated_at is null;

-- exercice_id stands here again (kept true by the foreign key) so that a year is one range of one index, read in
-- the order of the answer and without a join.
create table movements (
  schema_id id not null,
  folder_id id not null,
  exercice_id id not null,
  entry_id id not null,
  id id not null,
  account_id id not null,
  description text not null,
  due_date date,
  free_number text,
  invoice_number text not null,
  debit bigint not null,
  credit bigint not null,
  payment_id id,
  lettering_state text not null default 'none' check (lettering_state in ('none', 'partial', 'complete')),
  lettering_code text,
  -- Analytic shares: section id, amount in minor units, rate in ten-thousandths of a percent, and so on by threes;
  -- shares of one axis stand together. They are written with their movement and read only with it: as a table of
  -- their own they would be a third stream to merge into every export.
  shares bigint[] check (array_length(shares, 1) % 3 = 0),
  attachments jsonb,
  primary key (schema_id, folder_id, exercice_id, entry_id, id),
  unique (schema_id, folder_id, id),
  foreign key (schema_id, folder_id, exercice_id, entry_id)
    references entries (schema_id, folder_id, exercice_id, id) on delete cascade,
  foreign key (schema_id, folder_id, account_id) references accounts,
  foreign key (schema_id, folder_id, payment_id) references payments,
  check (debit = 0 or credit = 0),
  check ((lettering_state = 'none') = (lettering_code is null))
);

create index movements_by_account on movements (schema_id, folder_id, exercice_id, account_id);
create index movements_lettered on movements (schema_id, folder_id, exercice_id, lettering_state)
  where lettering_state <> 'none';

-- An entry lies in its exercice: a period is looked for only in the exercices it touches, so an entry dated
-- elsewhere would silently be missing from it.
create function entries_lie_in_exercice() returns trigger
  language plpgsql set search_path = grandlivre, pg_temp
as $$
declare
  stray record;
begin
  select n.id, n.date, x.start_date, x.end_date into stray
    from changed n join exercices x
      on x.schema_id = n.schema_id and x.folder_id = n.folder_id and x.id = n.exercice_id
    where n.date not between x.start_date and x.end_date
    limit 1;
  if found then
    raise check_violation using message = format('entry %s is dated %s, outside its exercice (%s to %s)',
      stray.id, stray.date, stray.start_date, stray.end_date);
  end if;
  return null;
end $$;

create trigger in_exercice_insert after insert on entries referencing new table as changed
  for each statement execute function entries_lie_in_exercice();
create trigger in_exercice_update after update on entries referencing new table as changed
  for each statement execute function entries_lie_in_exercice();

create function exercice_holds_entries() returns trigger
  language plpgsql set search_path = grandlivre, pg_temp
as $$
begin
  if exists (select from entries e where e.schema_id = new.schema_id and e.folder_id = new.folder_id
      and e.exercice_id = new.id and e.date not between new.start_date and new.end_date) then
    raise check_violation using message = format('exercice %s has entries outside %s to %s',
      new.id, new.start_date, new.end_date);
  end if;
  return null;
end $$;

create trigger holds_entries after update of start_date, end_date on exercices
  for each row execute function exercice_holds_entries();

-- Any statement that changes a ledger row moves the folder to a new ledger version, within its transaction. As a
-- trigger, because an ETag that misses one change serves stale books. The row lock on the folder makes writers of
-- one folder wait for each other, so a version names exactly one committed state.
create sequence ledger_versions as bigint;

create function advance_ledger_version() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
begin
  -- Ordered, so that two statements over several folders lock them in the same order.
  perform from folders f
    where (f.schema_id, f.id) in (select distinct c.schema_id, c.folder_id from changed c)
    order by f.schema_id, f.id for no key update;
  update folders f set ledger_version = nextval('ledger_versions')
    where (f.schema_id, f.id) in (select distinct c.schema_id, c.folder_id from changed c);
  return null;
end $$;

-- The folder's own columns (name, currency) show in exports too.
create function advance_own_ledger_version() returns trigger
  language plpgsql set search_path = grandlivre, pg_temp
as $$
begin
  new.ledger_version := nextval('ledger_versions');
  return new;
end $$;

create trigger ledger_version before update on folders for each row
  when (old.* is distinct from new.* and old.ledger_version = new.ledger_version)
  execute function advance_own_ledger_version();

-- What the triggers above cannot attribute: a truncate shows no rows, and an update that moves a row to another folder
-- would pass over the folder it leaves.
create function refuse_unversioned_change() returns trigger
  language plpgsql
as $$
begin
  raise exception 'this % of % would not change ledger_version', tg_op, tg_table_name
    using hint = 'Delete the rows, and insert them anew where they belong.';
end $$;

do $$
declare
  ledger_table text;
begin
  foreach ledger_table in array array['payments', 'vat_codes', 'accounts', 'companies', 'employees', 'journals',
    'banks', 'axes', 'sections', 'exercices', 'entries', 'movements']
  loop
    execute format('create trigger ledger_version_insert after insert on %I referencing new table as changed '
      'for each statement execute function advance_ledger_version()', ledger_table);
    execute format('create trigger ledger_version_update after update on %I referencing new table as changed '
      'for each statement execute function advance_ledger_version()', ledger_table);
    execute format('create trigger ledger_version_delete after delete on %I referencing old table as changed '
      'for each statement execute function advance_ledger_version()', ledger_table);
    execute format('create trigger refuse_truncate before truncate on %I '
      'for each statement execute function refuse_unversioned_change()', ledger_table);
    execute format('create trigger refuse_move before update of schema_id, folder_id on %I for each row '
      'when ((old.schema_id, old.folder_id) is distinct from (new.schema_id, new.folder_id)) '
      'execute function refuse_unversioned_change()', ledger_table);
    execute format('alter table %I enable row level security', ledger_table);
    execute format('create policy tenant on %I using (schema_id = tenant())', ledger_table);
    execute format('grant select on %I to grandlivre_service', ledger_table);
  end loop;
end $$;
