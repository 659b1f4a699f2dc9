-- Before all else, and in the order in which imports and staff take them: what waits for open transactions. It holds up no
-- reader, so requests go on meanwhile (migrate.ts).
lock table folders, tokens, subscriptions, events in share row exclusive mode;

-- The fingerprint of MASTER_KEY (src/auth/master-key.ts), once a service has adopted its key. A table of its own: a new
-- column of service_state would hold up every request until the end of the migration.
create table adopted_key (
  one boolean primary key default true check (one),
  fingerprint bytea not null check (length(fingerprint) = 32)
);

create or replace function master_key_standing() returns table (fingerprint bytea, newest_secret bytea)
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select null::bytea, null::bytea;
  end;

create or replace function adopt_master_key(of_key bytea) returns bytea
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    select null::bytea;
  end;
