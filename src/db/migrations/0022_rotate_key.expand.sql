-- While `rotate-key` runs, and after one that was cut off: the fingerprint of the key that secrets are re-encrypted with
-- (src/auth/rotation/rotation.ts). A table of its own, because a new column of adopted_key would hold up every probe until the end of
-- the migration.
create table next_key (
  one boolean primary key default true check (one),
  fingerprint bytea not null check (length(fingerprint) = 32)
);

drop function if exists master_key_standing();
create or replace function master_key_standing()
  returns table (fingerprint bytea, next_fingerprint bytea, newest_secret bytea)
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select null::bytea, null::bytea, null::bytea;
  end;

create or replace function sealing_key() returns bytea language plpgsql as 'begin return null; end';

-- functions: sha256 6652cd7beab7336b217adaa92d1f41bd337e1fdaad62db912f37363bcbcf2d4a
