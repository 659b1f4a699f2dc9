-- Who may sign in to the console, and who has (src/console). Only the owner of the tables reads and writes these.

create table console_keys (
  id bigint primary key generated always as identity,
  -- The name of a member of staff, as the audit quotes it.
  name text not null,
  key_hash bytea not null unique check (length(key_hash) = 32),
  created_at timestamptz(0) not null default now(),
  used_at timestamptz(0),
  revoked_at timestamptz(0)
);
create unique index console_keys_in_use on console_keys (name) where revoked_at is null;

create table console_sessions (
  session_hash bytea primary key check (length(session_hash) = 32),
  key_id bigint not null references console_keys,
  expires_at timestamptz not null
);

-- The console lists full exports of all tenants: those that are open, and those that ended last.
create index exports_open on exports (created_at) where state in ('queued', 'running');
create index exports_ended on exports (finished_at desc) where finished_at is not null;
