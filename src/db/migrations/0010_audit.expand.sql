-- The audit: who was given what, and what staff did (docs/operators/audit.md). Rows are appended by functions/audit.sql alone,
-- each with the hash of the one before.

create table audit_rows (
  number bigint primary key, -- 1, 2, 3 and so on, without gaps
  at timestamptz not null, -- when the answer ended, or the act
  third_party_id bigint,
  token_id bigint,
  staff text, -- of acts of staff: who, and the login of the database
  act text not null, -- `GET /api/v1/mad/movements`, `token issue`
  schema_id bigint,
  folder_id bigint,
  request_id text,
  details text not null, -- JSON, as it was hashed: the selection of a request, what an act concerned
  rows bigint,
  bytes bigint, -- of the body, as sent
  sha256 text, -- of the content, hexadecimal
  cursor text,
  outcome text not null, -- sent, unchanged, cut, refused, failed; done: an act of staff
  code text, -- of the error
  hash bytea not null
);
create index audit_rows_by_folder on audit_rows (folder_id, number) where folder_id is not null;

-- One row: the last number and its hash. It is locked while rows are appended, which puts them in one order.
create table audit_head (
  one boolean primary key default true check (one),
  count bigint not null,
  hash bytea not null
);
insert into audit_head (count, hash) values (0, decode(repeat('00', 32), 'hex'));

-- One row: the number and hash of the last row that retention deleted, signed with a key that the database does not have.
create table audit_start (
  one boolean primary key default true check (one),
  count bigint not null,
  hash bytea not null,
  at timestamptz,
  signature bytea
);
insert into audit_start (count, hash) values (0, decode(repeat('00', 32), 'hex'));

-- The last batch of each process: a batch is appended once, even if its sender lost the answer and sends it again.
create table audit_batches (
  sender uuid primary key,
  batch bigint not null,
  at timestamptz not null default clock_timestamp()
);

-- No policies and no rights: the service role reaches these tables through functions only.
alter table audit_rows enable row level security;
alter table audit_head enable row level security;
alter table audit_start enable row level security;
alter table audit_batches enable row level security;

create or replace function audit_hash(previous bytea, of_row audit_rows) returns bytea language sql as $$select ''::bytea$$;
create or replace function append_audit(given json, by_staff text) returns bigint language sql as 'select 0::bigint';
create or replace function append_requests(given json, of_sender uuid, of_batch bigint) returns bigint
  language sql as 'select 0::bigint';
create or replace function expired_audit(months integer, at_most integer) returns table (count bigint, hash bytea)
  language sql as $$select 0::bigint, ''::bytea$$;
create or replace function forget_audit(until bigint, signed_at timestamptz, of_signature bytea, months integer)
  returns bigint language sql as 'select 0::bigint';
create or replace function refuse_audit_change() returns trigger language plpgsql as 'begin return null; end';

create trigger refuse_change before update or delete on audit_rows for each row execute function refuse_audit_change();
create trigger refuse_truncate before truncate on audit_rows for each statement execute function refuse_audit_change();

-- functions: sha256 864a1e1349f02cad1a5a1325732bc274ec2a2b5e9cf10a541e7658b97ddcf51d
