-- The fingerprint of MASTER_KEY (src/auth/master-key.ts). Null until a process has adopted its key.
alter table service_state add column key_fingerprint bytea check (length(key_fingerprint) = 32);

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

