-- The gate (docs/operators/scaling.md#failover). A server that took the place of another, by a promotion or a restore, may
-- lack its last commits. So whatever is given out (a version, an id, a number, a claim) passes a gate first: a server that
-- finds another one's name in the database begins a new epoch, and goes on far beyond what was lost.
--
-- Epoch and name are sequences: `setval` is seen by all at once and outlives a rollback. With a row, a long import as the
-- first writer would hold up everything until its commit. A crash of the server loses no `setval` before what was drawn
-- after it, as both are in one log.

-- The name of this server: system identifier, timeline, and the oid of a table. A promotion and a recovery to a point in time
-- give another timeline, a dump another oid, and another identifier on another server. The sessions of a server keep its
-- identifier, which costs 9 of 13 microseconds to read. 52 bits, as those of 0.2.0 expect of sequences.
create or replace function this_server() returns bigint
  language sql volatile
  return hashtextextended(concat_ws('/', current_setting('grandlivre.system_identifier', true),
    left(pg_walfile_name(pg_current_wal_lsn()), 8), 'grandlivre.service_state'::regclass::oid::text), 0) & 4503599627370495;

revoke all on function this_server from public;

create or replace function is_other_server() returns boolean
  language sql volatile
  return pg_sequence_last_value('grandlivre.server_name') is distinct from this_server();

revoke all on function is_other_server from public;

-- Returns the epoch, in which whatever is given out afterwards is. 100,000 calls take 0.3 s.
create or replace function pass_gate() returns bigint
  language plpgsql volatile security definer set search_path = grandlivre, pg_temp
as $$
begin
  if is_other_server() then
    -- Also true at the first call of a session.
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
  -- Asked here too, as calls of functions are most of the cost.
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

-- The last value of a sequence that is to count as given out, after that `last` one. The state that was lost may have given
-- out any number, and may itself have begun with an epoch after the state that is left. Time tells the two apart: two million
-- for each second since 2026, more than any server gives out, or four billion more, an hour's worth, where the sequence has
-- come that far. A random distance below 2^40 tells those apart whose clocks differ. Multiples of a thousand, as the sequence
-- of ids goes (src/ledger/ids.ts). Below 2^53 until the year 2160, or for some 8,000 epochs.
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

-- Begins a new epoch, if it is forced or nobody else has begun it for this server meanwhile. Returns the former and the new
-- last value of each sequence, of the epoch itself too. Jumps first, the name last: who finds the name draws beyond them. The
-- lock is released here, so that nobody waits for the transaction.
create or replace function begin_epoch(is_forced boolean) returns table (name text, last bigint, beyond bigint)
  language plpgsql volatile set search_path = grandlivre, pg_temp
as $$
declare
  gate constant bigint := hashtextextended('grandlivre gate', 0);
begin
  -- Here, where the handler releases it: a cancel that comes with the lock is raised at the next statement.
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
    -- Another one, of at most nine digits, as cursors have. Random, so that it is not that of a state that was lost before.
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
