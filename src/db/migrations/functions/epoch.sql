-- The gate (docs/operators/scaling.md#failover). A server that took the place of another, by a promotion or a restore, may
-- lack its last commits. So every new version, id, number or claim passes a gate first: a server that finds the name of
-- another server in the database begins a new epoch, and continues far beyond the values that may be lost.
--
-- Epoch and name are sequences, because all sessions see a `setval` at once, and a rollback keeps it. If they were a row, a
-- long import as the first writer would hold up all other writers until its commit. A crash that loses a `setval` also
-- loses the values drawn after it, because both are in one log.

-- The name of this server: system identifier, timeline, and the oid of a table. A promotion and a recovery to a point in time
-- give another timeline, a dump another oid, and another server has another identifier. Each session keeps the identifier,
-- because reading it takes 9 of 13 microseconds. The name has 52 bits, as processes of 0.2.0 expect of sequences.
create or replace function this_server() returns bigint
  language sql volatile
  return hashtextextended(concat_ws('/', current_setting('grandlivre.system_identifier', true),
    left(pg_walfile_name(pg_current_wal_lsn()), 8), 'grandlivre.service_state'::regclass::oid::text), 0) & 4503599627370495;

revoke all on function this_server from public;

create or replace function is_other_server() returns boolean
  language sql volatile
  return pg_sequence_last_value('grandlivre.server_name') is distinct from this_server();

revoke all on function is_other_server from public;

-- Returns the epoch of all values that are drawn afterwards. 100,000 calls take 0.3 s.
create or replace function pass_gate() returns bigint
  language plpgsql volatile security definer set search_path = grandlivre, pg_temp
as $$
begin
  if is_other_server() then
    -- This is also true at the first call of a session.
    perform set_config('grandlivre.system_identifier', (select system_identifier::text from pg_control_system()), false);
    if is_other_server() then
      perform begin_epoch(false);
    end if;
  end if;
  return pg_sequence_last_value('epoch');
end $$;

revoke all on function pass_gate from public;
grant execute on function pass_gate to grandlivre_service;

-- The next value of a sequence whose values name things. Only this function and draw_several call nextval.
create or replace function draw(of regclass) returns bigint
  language plpgsql volatile security definer set search_path = grandlivre, pg_temp
as $$
begin
  -- The condition of pass_gate stands here too, because the call of a function is most of the cost.
  if is_other_server() then
    perform pass_gate();
  end if;
  -- The function runs with the rights of the owner, and callers must not move the epoch or a sequence of another schema.
  if of not in ('ids', 'ledger_versions', 'event_ids', 'delivery_ids', 'console_key_ids') then
    raise insufficient_privilege using message = format('%s gives out no values', of);
  end if;
  return nextval(of);
end $$;

revoke all on function draw from public;
grant execute on function draw to grandlivre_service;

create or replace function draw_several(of regclass, count bigint) returns setof bigint
  language plpgsql volatile security definer set search_path = grandlivre, pg_temp
as $$
begin
  perform pass_gate();
  if count > 0 then
    -- Checks the name. The gate is passed for all: within a statement, the server stays the same. A call of draw for each of
    -- 10,000 took 40 ms instead of 8, at each start of the service.
    return next draw(of);
    return query select nextval(of) from generate_series(2, count);
  end if;
end $$;

revoke all on function draw_several from public;
grant execute on function draw_several to grandlivre_service;

-- The value after which a sequence continues in a new epoch; `last` is its last known value. The lost server may have drawn
-- any number of values, and may itself have begun an epoch after the state that is left. Time keeps the two apart: the
-- value is two million for each second since 2026, more than any server draws, or `last` and four billion more (about half
-- an hour's worth) if the sequence is already there. A random distance below 2^40 keeps servers apart whose clocks differ. The
-- value is a multiple of a thousand, as the sequence of ids requires (src/ledger/ids.ts). It stays below 2^53 until the year
-- 2160, or for some 8,000 epochs.
create or replace function beyond_lost(last bigint, now timestamptz) returns bigint
  language plpgsql volatile
as $$
declare
  beyond bigint := greatest(last + 4000000000, 2000000 * floor(extract(epoch from now - '2026-01-01 00:00Z'))::bigint)
    + 1000 * floor(random() * 2 ^ 30)::bigint;
begin
  if now > '2100-01-01 00:00Z' then
    raise exception 'The clock of the database server says %: set it, and try again. Ids go on from it.', now;
  elsif beyond + 4000000000 > 9007199254740991 then
    raise exception 'After % too few ids are left below 2^53 to go beyond those that were lost', last;
  end if;
  return beyond;
end $$;

revoke all on function beyond_lost from public;

-- Begins a new epoch, if it is forced or no other session has begun it for this server meanwhile. Returns the former and the
-- new last value of each sequence, including the epoch's. The sequences jump first and the name is set last, so that a
-- session that finds the name draws beyond the jump. The lock is released here, so that nobody waits for the transaction.
create or replace function begin_epoch(is_forced boolean) returns table (name text, last bigint, beyond bigint)
  language plpgsql volatile set search_path = grandlivre, pg_temp
as $$
declare
  gate constant bigint := hashtextextended('grandlivre gate', 0);
begin
  -- The lock is taken here, where the handler releases it: a cancel that arrives with it is raised at the next statement.
  perform pg_advisory_lock(gate);
  perform set_config('grandlivre.system_identifier', (select system_identifier::text from pg_control_system()), false);
  if is_forced or is_other_server() then
    for name, last in
      select s.sequencename, coalesce(s.last_value, 0) from pg_sequences s
      where s.schemaname = 'grandlivre' and s.sequencename not in ('epoch', 'epoch_began', 'server_name')
      order by 1
    loop
      beyond := setval(quote_ident(name), beyond_lost(last, clock_timestamp()));
      return next;
    end loop;
    name := 'epoch';
    last := pg_sequence_last_value('epoch');
    -- The new epoch has at most nine digits, as cursors require. It is random, so that it differs from an epoch that was lost.
    beyond := 1 + floor(random() * 999999998)::bigint;
    beyond := setval('epoch', beyond + (beyond >= last)::integer);
    return next;
    perform setval('epoch_began', extract(epoch from clock_timestamp())::bigint);
    perform setval('server_name', this_server());
    raise log 'grandlivre: this server took the place of another, and epoch % follows %', beyond, last;
  end if;
  perform pg_advisory_unlock(gate);
exception when others or query_canceled then
  perform pg_advisory_unlock(gate);
  raise;
end $$;

revoke all on function begin_epoch from public;

-- `cli failover` of 0.2.0 writes the epoch here, after it has moved all sequences.
create or replace function adopt_epoch() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
begin
  perform setval('epoch_began', extract(epoch from clock_timestamp())::bigint);
  perform setval('epoch', new.epoch);
  return null;
end $$;

revoke all on function adopt_epoch from public;
