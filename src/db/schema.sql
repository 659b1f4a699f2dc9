-- The schema after all migrations. A new database begins with it: migrate.ts runs it, and then first-rows.sql.
-- After a change of the schema, `npm run schema` rewrites it; a test compares it. Comments are written here by hand, above
-- a table, a column or another object, and stay there. The functions as they were written, with reasons, are in
-- migrations/functions/. Left out: rows, owners, and the schema pgboss, which the library of the queue makes and migrates.

do $$ begin
  if to_regnamespace('grandlivre') is null then
    create schema grandlivre;
  end if;
  if not exists (select from pg_roles where rolname = 'grandlivre_service') then
    create role grandlivre_service nologin;
  end if;
end $$;
-- An empty one is left of a start of 0.3.0 that failed.
drop table if exists migrations;
-- They name tables that come later.
set local check_function_bodies = off;

GRANT USAGE ON SCHEMA grandlivre TO grandlivre_service;

CREATE TYPE address AS (
  number text,
  locating_index text,
  street_type text,
  street_name text,
  complement text,
  postal_code text,
  city text,
  country text
);

CREATE DOMAIN id AS bigint CHECK (VALUE >= 1 AND VALUE <= '9007199254740991'::bigint);

CREATE SEQUENCE console_key_ids AS bigint INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1;

CREATE SEQUENCE delivery_ids AS bigint INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1;
GRANT USAGE ON SEQUENCE delivery_ids TO grandlivre_service;

CREATE SEQUENCE epoch AS bigint INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1;
GRANT SELECT ON SEQUENCE epoch TO grandlivre_service;

-- Seconds since 1970.
CREATE SEQUENCE epoch_began AS bigint INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1;
GRANT SELECT ON SEQUENCE epoch_began TO grandlivre_service;

-- Ids of the events of one schema are in the order of the commits: who writes events holds lock_events(schema) from
-- before the ids are drawn until the commit, so that no reader of events up to an id passes over one that is yet to be
-- committed. Across schemas ids say nothing.
CREATE SEQUENCE event_ids AS bigint INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1;
GRANT USAGE ON SEQUENCE event_ids TO grandlivre_service;

-- Each value is a block of 1,000 ids (ledger/ids.ts), so an import of millions of rows asks once per block. Ids stay
-- below 2^53: JSON clients hold numbers as doubles, and ids travel as JSON numbers in events and in key/info.
CREATE SEQUENCE ids AS bigint INCREMENT BY 1000 MINVALUE 1000 MAXVALUE 9223372036854775807 START WITH 1000;
GRANT USAGE ON SEQUENCE ids TO grandlivre_service;

-- Any statement that changes a row of a ledger gives its folder a new version, within its transaction. Triggers do it,
-- because an ETag that misses one change serves stale books. The row lock on the folder makes writers of one folder wait
-- for each other, so a version names exactly one committed state.
CREATE SEQUENCE ledger_versions AS bigint INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1;

CREATE SEQUENCE server_name AS bigint INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1;

CREATE OR REPLACE FUNCTION grandlivre.activate(of_schema bigint, token bigint)
 RETURNS boolean
 LANGUAGE plpgsql
 SET lock_timeout TO '250ms'
AS $function$
begin
  update tokens t set activated_at = now()
  where t.schema_id = of_schema and t.id = token and t.activated_at is null;
  return true;
exception when lock_not_available then
  return false;
end $function$
;
REVOKE ALL ON FUNCTION activate(bigint,bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.adopt_epoch()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  perform setval('epoch_began', extract(epoch from clock_timestamp())::bigint);
  perform setval('epoch', new.epoch);
  return null;
end $function$
;
REVOKE ALL ON FUNCTION adopt_epoch() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.advance_ledger_version()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  kind text := tg_argv[0];
  id text := quote_ident(coalesce(tg_argv[1], 'folder_id'));
  touched text := format('(select schema_id, folder_id, %s as id from changed%s) touched', id,
    case when kind is not null and tg_op = 'UPDATE'
      then format(' union all select schema_id, folder_id, %s from former', id) else '' end);
  folder record;
  version bigint;
  ids int8multirange;
begin
  -- The order makes two statements over several folders lock them in the same order.
  for folder in execute format(
    'select schema_id, folder_id, min(id) as least, max(id) as greatest, count(distinct id) as ids
     from %s group by schema_id, folder_id order by schema_id, folder_id', touched)
  loop
    version := next_ledger_version(folder.schema_id, folder.folder_id);
    continue when version is null;
    if kind is distinct from 'entries' then
      perform note_table_change(folder.schema_id, folder.folder_id, version);
    end if;
    continue when kind is null;
    if folder.greatest - folder.least + 1 = folder.ids
      or kind = 'entries' and folder.ids >= 100 and entries_between(folder.schema_id, folder.folder_id,
        folder.least, folder.greatest, 2 * folder.ids + 1) <= 2 * folder.ids
    then
      -- As in a load, whose entries have ids of movements between them. One range that holds at most twice the entries
      -- touched takes 30 bytes and 3 ms for 10,000 movements; the aggregate of ranges takes 12 ms, and 20 bytes a range.
      ids := int8multirange(int8range(folder.least, folder.greatest + 1));
    else
      execute format('select range_agg(int8range(id, id + 1)) from %s where schema_id = $1 and folder_id = $2', touched)
        into ids using folder.schema_id, folder.folder_id;
    end if;
    insert into ledger_changes (schema_id, folder_id, version, kind, ids)
      values (folder.schema_id, folder.folder_id, version, kind, coarsened(ids));
  end loop;
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.advance_ledger_versions_of_third_parties()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  renamed bigint[] := array(select n.id from changed n join former o on o.id = n.id
    where (n.code, n.name) is distinct from (o.code, o.name));
  folder record;
  version bigint;
begin
  -- Disconnecting a partner changes no ledger.
  if cardinality(renamed) = 0 then
    return null;
  end if;
  -- An uncommitted transaction that has written entries of a third party holds a share lock on its row. The first pass
  -- does not see these entries; the lock on the third party waits for them, and the second pass finds their folders.
  -- Each pass locks folders first, since a writer that holds a folder may be about to request that share lock.
  for pass in 1..2 loop
    perform from folders f
      where (f.schema_id, f.id) in
        (select e.schema_id, e.folder_id from entries e where e.third_party_id = any (renamed))
      order by f.schema_id, f.id for no key update;
    perform from third_parties p where p.id = any (renamed) order by p.id for update;
  end loop;
  for folder in
    select e.schema_id, e.folder_id, range_agg(int8range(e.third_party_id, e.third_party_id + 1)) as ids
      from entries e where e.third_party_id = any (renamed) group by 1, 2 order by 1, 2
  loop
    version := next_ledger_version(folder.schema_id, folder.folder_id);
    continue when version is null;
    insert into ledger_changes (schema_id, folder_id, version, kind, ids)
      values (folder.schema_id, folder.folder_id, version, 'third_parties', folder.ids);
  end loop;
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.advance_own_ledger_version()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  new.ledger_version := draw('ledger_versions');
  perform note_ledger_change(new.schema_id, new.id, new.ledger_version);
  perform note_table_change(new.schema_id, new.id, new.ledger_version);
  return new;
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.append_audit(given json, by_staff text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  head audit_head;
  added audit_rows;
  is_whole boolean;
  epoch bigint;
begin
  select * into strict head from audit_head for update;
  epoch := pass_gate();
  if head.epoch <> epoch then
    added.at := clock_timestamp();
    added.number := beyond_lost(head.count, added.at);
    added.act := 'epoch';
    added.details := format('{"epoch":%s,"former":%s,"last":%s}', epoch, head.epoch, head.count);
    added.outcome := 'done';
    added.hash := audit_hash(head.hash, added);
    insert into audit_rows values (added.*);
    head := (head.one, added.number, added.hash, epoch);
  end if;
  for added in select * from json_populate_recordset(null::audit_rows, given) loop
    if added.act = 'epoch' then
      raise exception 'Only the database begins an epoch' using errcode = 'invalid_parameter_value';
    end if;
    head.count := head.count + 1;
    added.number := head.count;
    added.at := coalesce(added.at, clock_timestamp());
    added.staff := by_staff;
    -- The address of a file names its export alone.
    if added.act in ('GET /files', 'HEAD /files') then
      is_whole := added.act = 'GET /files' and added.outcome = 'sent' and added.details::json -> 'from' is null;
      select e.folder_id, case when is_whole then e.rows end, case when is_whole then coalesce(e.file_sha256, e.sha256) end
      into added.folder_id, added.rows, added.sha256
      from exports e where e.schema_id = added.schema_id and e.id = added.details::json ->> 'exportId';
    end if;
    added.hash := audit_hash(head.hash, added);
    head.hash := added.hash;
    insert into audit_rows values (added.*);
  end loop;
  update audit_head h set count = head.count, hash = head.hash, epoch = head.epoch;
  return head.count;
end $function$
;
REVOKE ALL ON FUNCTION append_audit(json,text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.append_requests(given json, of_sender uuid, of_batch bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  insert into audit_batches as b (sender, batch) values (of_sender, of_batch)
  on conflict (sender) do update set batch = excluded.batch, at = excluded.at where b.batch < excluded.batch;
  if not found then
    return (select count from audit_head);
  end if;
  if of_batch = 1 then
    delete from audit_batches where at < clock_timestamp() - interval '1 day' and sender <> of_sender;
  end if;
  return append_audit(given, null);
end $function$
;
REVOKE ALL ON FUNCTION append_requests(json,uuid,bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION append_requests(json,uuid,bigint) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.begin_epoch(is_forced boolean)
 RETURNS TABLE(name text, last bigint, beyond bigint)
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
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
end $function$
;
REVOKE ALL ON FUNCTION begin_epoch(boolean) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.begin_ledger()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  if tg_when = 'BEFORE' then
    new.ledger_version := draw('ledger_versions');
    return new;
  end if;
  insert into ledger_changes (schema_id, folder_id, version, kind, ids)
    values (new.schema_id, new.id, new.ledger_version, 'forgotten', '{}');
  return null;
end $function$
;
REVOKE ALL ON FUNCTION begin_ledger() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.beyond_lost(last bigint, now timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
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
end $function$
;
REVOKE ALL ON FUNCTION beyond_lost(bigint,timestamp with time zone) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.coarsened(exact int8multirange)
 RETURNS int8multirange
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (SELECT CASE WHEN (count(*) <= 1000) THEN coarsened.exact WHEN (sum((upper(r.r) - lower(r.r))) > (100000)::numeric) THEN range_agg(int8range(((lower(r.r) / 1024) * 1024), ((((upper(r.r) - 1) / 1024) + 1) * 1024))) ELSE (SELECT range_agg(int8range(lower(j.j), (upper(j.j) - 1))) AS range_agg FROM (SELECT range_agg(int8range(lower(x.x), (upper(x.x) + 1))) AS joined FROM unnest(coarsened.exact) x(x)) longer, LATERAL unnest(longer.joined) j(j)) END AS range_agg FROM unnest(coarsened.exact) r(r))
;

CREATE OR REPLACE FUNCTION grandlivre.compact_ledger_changes(before timestamp with time zone)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  day timestamptz;
  day_end timestamptz;
  joined record;
  gone bigint := 0;
begin
  perform lock_log_of_changes();
  before := least(before, date_trunc('day', now(), 'UTC') - interval '7 days');
  select min(c.logged_at) into day from ledger_changes c
    where c.logged_at >= (select coalesce(compacted_until, '-infinity') from service_state)
      and c.logged_at < before and c.kind <> 'forgotten';
  if day is null then
    return null;
  end if;
  day_end := least(before, date_trunc('day', day, 'UTC') + interval '24 hours');
  for joined in
    select schema_id, folder_id, array_agg(version order by version) as versions, range_agg(ids) as ids
      from ledger_changes where logged_at >= day and logged_at < day_end and kind <> 'forgotten'
      group by schema_id, folder_id, kind having count(*) > 1
  loop
    update ledger_changes set ids = coarsened(joined.ids)
      where schema_id = joined.schema_id and folder_id = joined.folder_id
        and version = joined.versions[cardinality(joined.versions)];
    delete from ledger_changes
      where schema_id = joined.schema_id and folder_id = joined.folder_id
        and version = any (trim_array(joined.versions, 1));
    gone := gone + cardinality(joined.versions) - 1;
  end loop;
  -- Last: until the transaction ends, nobody else can update this row.
  update service_state set compacted_until = day_end;
  return gone;
end $function$
;
REVOKE ALL ON FUNCTION compact_ledger_changes(timestamp with time zone) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION compact_ledger_changes(timestamp with time zone) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.cursor_code(key bytea, of_schema bigint, of_folder bigint, version bigint, epoch bigint, rendering text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN replace(replace("left"(encode(sha256((key || sha256((key || ((((((((((of_schema)::text || '/'::text) || (of_folder)::text) || '/'::text) || (version)::text) || '/'::text) || (epoch)::text) || '/'::text) || rendering))::bytea)))), 'base64'::text), 22), '+'::text, '-'::text), '/'::text, '_'::text)
;
REVOKE ALL ON FUNCTION cursor_code(bytea,bigint,bigint,bigint,bigint,text) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.delivering()
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN COALESCE((current_setting('grandlivre.delivering'::text, true) = 'on'::text), false)
;
GRANT EXECUTE ON FUNCTION delivering() TO PUBLIC;
GRANT EXECUTE ON FUNCTION delivering() TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.draw(of regclass)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
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
end $function$
;
REVOKE ALL ON FUNCTION draw(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION draw(regclass) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.draw_several(of regclass, count bigint)
 RETURNS SETOF bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  perform pass_gate();
  if count > 0 then
    -- Checks the name. The gate is passed for all: within a statement, the server stays the same. A call of draw for each of
    -- 10,000 took 40 ms instead of 8, at each start of the service.
    return next draw(of);
    return query select nextval(of) from generate_series(2, count);
  end if;
end $function$
;
REVOKE ALL ON FUNCTION draw_several(regclass,bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION draw_several(regclass,bigint) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.entries_lie_in_exercice()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
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
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.tenant()
 RETURNS bigint
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (NULLIF(current_setting('grandlivre.schema_id'::text, true), ''::text))::bigint
;
GRANT EXECUTE ON FUNCTION tenant() TO PUBLIC;
GRANT EXECUTE ON FUNCTION tenant() TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.exercice_holds_entries()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  if exists (select from entries e where e.schema_id = new.schema_id and e.folder_id = new.folder_id
      and e.exercice_id = new.id and e.date not between new.start_date and new.end_date) then
    raise check_violation using message = format('exercice %s has entries outside %s to %s',
      new.id, new.start_date, new.end_date);
  end if;
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.exports_end_once()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise check_violation using message = format('export %s is %s, which is final', old.id, old.state);
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.forget_audit(until bigint, signed_at timestamp with time zone, of_signature bytea, months integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  forgotten bigint;
begin
  if exists (
    select from audit_rows r
    where r.number <= until and r.at >= now() - make_interval(months => greatest(forget_audit.months, 1))
  ) then
    raise exception 'Some rows of the audit up to % are not old enough to be deleted', until;
  end if;
  update audit_start set count = until, hash = r.hash, at = signed_at, signature = of_signature
  from audit_rows r where r.number = until;
  if not found then
    return 0;
  end if;
  perform set_config('grandlivre.audit_retention', 'on', true);
  delete from audit_rows r where r.number <= until;
  get diagnostics forgotten = row_count;
  perform set_config('grandlivre.audit_retention', 'off', true);
  perform append_audit(json_build_array(json_build_object(
    'act', 'audit retention', 'outcome', 'done',
    'details', format('{"months":%s,"rows":%s,"until":%s}', months, forgotten, until))), null);
  return forgotten;
end $function$
;
REVOKE ALL ON FUNCTION forget_audit(bigint,timestamp with time zone,bytea,integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget_audit(bigint,timestamp with time zone,bytea,integer) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.forget_ledger_changes(before timestamp with time zone, at_most integer)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  folder record;
  forgotten bigint := 0;
begin
  perform lock_log_of_changes();
  for folder in
    select schema_id, folder_id, max(version) as latest, count(*) as changes
      from (select schema_id, folder_id, version from ledger_changes
        where logged_at < least(before, now() - interval '1 day') and kind <> 'forgotten' order by logged_at limit at_most) oldest
      group by schema_id, folder_id
  loop
    update ledger_changes set kind = 'forgotten', ids = '{}'
      where schema_id = folder.schema_id and folder_id = folder.folder_id and version = folder.latest;
    delete from ledger_changes
      where schema_id = folder.schema_id and folder_id = folder.folder_id and version < folder.latest;
    forgotten := forgotten + folder.changes;
  end loop;
  return forgotten;
end $function$
;
REVOKE ALL ON FUNCTION forget_ledger_changes(timestamp with time zone,integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION forget_ledger_changes(timestamp with time zone,integer) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.lock_events(of_schema bigint)
 RETURNS void
 LANGUAGE sql
RETURN pg_advisory_xact_lock(hashtextextended(('grandlivre events of '::text || of_schema), (0)::bigint))
;

CREATE OR REPLACE FUNCTION grandlivre.lock_events_of_changes(of_schema bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  perform lock_events(schema_id) from (
    select distinct unnest(of_schema || nullif(current_setting('grandlivre.changed_schemas', true), '')::bigint[])
      order by 1
  ) changed (schema_id);
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.lock_log_of_changes()
 RETURNS void
 LANGUAGE sql
RETURN pg_advisory_xact_lock(hashtextextended('grandlivre log of changes'::text, (0)::bigint))
;

CREATE OR REPLACE FUNCTION grandlivre.next_ledger_version(of_schema bigint, of_folder bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  version bigint;
begin
  perform from folders where schema_id = of_schema and id = of_folder and erased_at is null for no key update;
  if not found then
    return null;
  end if;
  update folders set ledger_version = draw('ledger_versions')
    where schema_id = of_schema and id = of_folder returning ledger_version into version;
  perform note_ledger_change(of_schema, of_folder, version);
  return version;
end $function$
;
REVOKE ALL ON FUNCTION next_ledger_version(bigint,bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.note_firm_of_event()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.firm_id := coalesce((new.scope ->> 'firmId')::bigint, case when new.folder_id is null then 0 end);
  if new.firm_id is null then
    new.firm_id := (select f.firm_id from grandlivre.folders f where f.schema_id = new.schema_id and f.id = new.folder_id);
  end if;
  return new;
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.note_ledger_change(of_schema bigint, of_folder bigint, version bigint)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  schemas bigint[] := coalesce(nullif(current_setting('grandlivre.changed_schemas', true), ''), '{}')::bigint[];
begin
  if not of_schema = any (schemas) then
    perform set_config('grandlivre.changed_schemas', (schemas || of_schema)::text, true);
  end if;
  perform set_config('grandlivre.latest_change', array[of_schema, of_folder, version]::text, true);
end $function$
;
REVOKE ALL ON FUNCTION note_ledger_change(bigint,bigint,bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.notify_lists()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  if tg_table_name = 'firms' then
    perform pg_notify('grandlivre_firms', new.id::text);
    perform pg_notify('grandlivre_ledgers', f.id::text) from folders f
      where f.schema_id = new.schema_id and f.firm_id = new.id;
  elsif tg_op = 'INSERT' then
    perform pg_notify('grandlivre_firms', new.firm_id::text);
  else
    perform pg_notify('grandlivre_firms', old.firm_id::text);
    perform pg_notify('grandlivre_ledgers', old.id::text);
  end if;
  return null;
end $function$
;
REVOKE ALL ON FUNCTION notify_lists() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.number_entries()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  schemas bigint[];
  folders bigint[];
  ids bigint[];
begin
  update entry_numbers n set last = c.last
    from (select schema_id, folder_id, exercice_id, journal_id, max(number::bigint) as last from changed
          where number ~ '^[0-9]{1,15}$' group by schema_id, folder_id, exercice_id, journal_id) c
    where (n.schema_id, n.folder_id, n.exercice_id, n.journal_id)
        = (c.schema_id, c.folder_id, c.exercice_id, c.journal_id) and n.last < c.last;
  -- The keys of the entries to number. Entries of two folders may have the same id.
  if tg_op = 'INSERT' then
    select array_agg(schema_id), array_agg(folder_id), array_agg(id) into schemas, folders, ids
      from changed where validated_at is not null and number is null;
  else
    select array_agg(c.schema_id), array_agg(c.folder_id), array_agg(c.id) into schemas, folders, ids
      from changed c join former f on (f.schema_id, f.folder_id, f.id) = (c.schema_id, c.folder_id, c.id)
      where c.validated_at is not null and c.number is null and f.validated_at is null;
  end if;
  if ids is null then
    return null;
  end if;
  insert into entry_numbers (schema_id, folder_id, exercice_id, journal_id, last)
    select f.schema_id, f.folder_id, f.exercice_id, f.journal_id, greatest(known.last, known.unnumbered - f.count)
      from (select c.schema_id, c.folder_id, c.exercice_id, c.journal_id, count(*) as count
            from changed c join unnest(schemas, folders, ids) as u (schema_id, folder_id, id)
              on (u.schema_id, u.folder_id, u.id) = (c.schema_id, c.folder_id, c.id)
            group by c.schema_id, c.folder_id, c.exercice_id, c.journal_id) f
      cross join lateral (
        select coalesce(max(case when e.number ~ '^[0-9]{1,15}$' then e.number::bigint end), 0) as last,
            count(*) filter (where e.number is null and e.validated_at is not null) as unnumbered
          from entries e
          where (e.schema_id, e.folder_id, e.exercice_id, e.journal_id)
              = (f.schema_id, f.folder_id, f.exercice_id, f.journal_id)
      ) known
      where not exists (select from entry_numbers n
        where (n.schema_id, n.folder_id, n.exercice_id, n.journal_id)
            = (f.schema_id, f.folder_id, f.exercice_id, f.journal_id));
  with fresh as materialized (
    select c.schema_id, c.folder_id, c.exercice_id, c.journal_id, c.id,
        row_number() over (partition by c.schema_id, c.folder_id, c.exercice_id, c.journal_id
          order by c.validated_at, c.id) as place
      from changed c join unnest(schemas, folders, ids) as u (schema_id, folder_id, id)
        on (u.schema_id, u.folder_id, u.id) = (c.schema_id, c.folder_id, c.id)
  ), given as (
    update entry_numbers n set last = n.last + f.count
      from (select schema_id, folder_id, exercice_id, journal_id, count(*) as count from fresh
            group by schema_id, folder_id, exercice_id, journal_id) f
      where (n.schema_id, n.folder_id, n.exercice_id, n.journal_id)
          = (f.schema_id, f.folder_id, f.exercice_id, f.journal_id)
      returning n.schema_id, n.folder_id, n.exercice_id, n.journal_id, n.last - f.count as before
  )
  update entries e set number = (g.before + f.place)::text
    from fresh f join given g on (g.schema_id, g.folder_id, g.exercice_id, g.journal_id)
      = (f.schema_id, f.folder_id, f.exercice_id, f.journal_id)
    where (e.schema_id, e.folder_id, e.id) = (f.schema_id, f.folder_id, f.id);
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.pass_gate()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  if is_other_server() then
    -- This is also true at the first call of a session.
    perform set_config('grandlivre.system_identifier', (select system_identifier::text from pg_control_system()), false);
    if is_other_server() then
      perform begin_epoch(false);
    end if;
  end if;
  return pg_sequence_last_value('epoch');
end $function$
;
REVOKE ALL ON FUNCTION pass_gate() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pass_gate() TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.publish_activation()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  perform lock_events(new.schema_id);
  insert into events (schema_id, folder_id, name, operation, scope, data)
    select new.schema_id, new.folder_id, 'connector', 'UPDATE',
           event_scope(new.schema_id, new.firm_id, new.folder_id), json_build_object('id', new.id, 'code', p.code)
    from third_parties p where p.id = new.third_party_id;
  perform pg_notify('grandlivre_events', new.schema_id::text);
  return null;
end $function$
;
REVOKE ALL ON FUNCTION publish_activation() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.publish_ledger_change()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  latest bigint[] := nullif(current_setting('grandlivre.latest_change', true), '')::bigint[];
begin
  -- This condition comes first, because a read of the row passes all versions that the transaction has left of it: with the
  -- second condition alone, 9,000 statements of one transaction took 4 s longer to commit.
  if new.schema_id = latest[1] and new.id = latest[2] and new.ledger_version < latest[3] then
    return null;
  end if;
  if not exists (select from folders f where f.schema_id = new.schema_id and f.id = new.id
      and f.ledger_version = new.ledger_version) then
    return null;
  end if;
  -- An erasure wakes the requests that wait, and publishes nothing.
  if new.erased_at is null then
    perform lock_events_of_changes(new.schema_id);
    insert into events (schema_id, folder_id, name, operation, scope, data)
      select new.schema_id, new.id, 'ledger', 'UPDATE', event_scope(new.schema_id, null, new.id),
             json_build_object('cursor', ledger_cursor(new.schema_id, new.id, new.ledger_version, s.rendering))
      from service_state s;
    perform pg_notify('grandlivre_events', new.schema_id::text);
  end if;
  perform pg_notify('grandlivre_ledgers', new.id::text);
  perform pg_notify('grandlivre_firms', new.firm_id::text);
  return null;
end $function$
;
REVOKE ALL ON FUNCTION publish_ledger_change() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.publish_move()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
declare
  id constant json := json_build_object('id', new.id::text);
  left_firm json;
begin
  perform lock_events_of_changes(new.schema_id);
  left_firm := event_scope(new.schema_id, old.firm_id, null)::jsonb || jsonb_build_object('accountingFolderId', new.id);
  insert into events (schema_id, folder_id, name, operation, scope, data) values
    (new.schema_id, new.id, 'accountingFolder', 'UPDATE', left_firm, id),
    (new.schema_id, new.id, 'accountingFolder', 'UPDATE', event_scope(new.schema_id, null, new.id), id);
  insert into events (schema_id, folder_id, name, operation, scope, data)
    select new.schema_id, new.id, 'ledger', 'UPDATE', left_firm,
      json_build_object('cursor', ledger_cursor(new.schema_id, new.id, new.ledger_version, rendering))
    from service_state;
  perform pg_notify('grandlivre_events', new.schema_id::text);
  perform pg_notify('grandlivre_firms', old.firm_id::text);
  return null;
end $function$
;
REVOKE ALL ON FUNCTION publish_move() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.selects(on_events text[], folder_ids bigint[], event_name text, of_folder bigint)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((event_name = ANY (on_events)) AND ((folder_ids = '{}'::bigint[]) OR COALESCE((of_folder = ANY (folder_ids)), false)))
;

CREATE OR REPLACE FUNCTION grandlivre.refuse_audit_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'DELETE' and current_setting('grandlivre.audit_retention', true) = 'on' then
    return old;
  end if;
  raise exception 'Rows of the audit are never changed, and only retention deletes them';
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.refuse_other_number()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if new.number is distinct from old.number then
    raise check_violation using message =
      format('entry %s has the number %s, which cannot become %s', old.id, old.number, coalesce(new.number, 'null'));
  end if;
  raise check_violation using
    message = format('entry %s has the number %s in its journal and exercice, and cannot move to others', old.id, old.number),
    hint = 'Delete the entry, and insert it again where it belongs.';
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.refuse_unversioned_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'this % of % would not change ledger_version', tg_op, tg_table_name
    using hint = 'Delete the rows, and insert them again where they belong.';
end $function$
;

CREATE OR REPLACE FUNCTION grandlivre.resume_subscriptions()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  if not opens_webhooks(new) then
    return null;
  end if;
  with others as materialized (
    select least(t.revoked_at, t.expires_at) as ended_at, opens_webhooks(t) as open from tokens t
    where (t.schema_id, t.third_party_id, t.level, coalesce(t.folder_id, t.firm_id))
        = (new.schema_id, new.third_party_id, new.level, coalesce(new.folder_id, new.firm_id)) and t.id <> new.id
      and (t.groups is null or 'webhooks' = any (t.groups))
  ), resumed as (
    update subscriptions s
    set failing_since = s.failing_since + (now() - greatest(s.failing_since, (select max(o.ended_at) from others o)))
    where (s.schema_id, s.third_party_id, s.level) = (new.schema_id, new.third_party_id, new.level)
      and coalesce(new.folder_id, new.firm_id) = case s.level when 'api' then s.folder_ids[1] else s.firm_id end
      and not exists (select from others o where o.open)
    returning s.id
  )
  update deliveries d set next_attempt_at = now() from resumed
    where d.subscription_id = resumed.id and d.state = 'pending' and d.next_attempt_at > now();
  return null;
end $function$
;
REVOKE ALL ON FUNCTION resume_subscriptions() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.sealing_key()
 RETURNS bytea
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
AS $function$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('grandlivre sealing', 0));
  -- A statement of its own sees what was committed while this one waited.
  return (select fingerprint from adopted_key);
end $function$
;
REVOKE ALL ON FUNCTION sealing_key() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sealing_key() TO grandlivre_service;

CREATE TABLE accounts (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  number text NOT NULL,
  name text NOT NULL,
  closed boolean DEFAULT false NOT NULL,
  counterpart_account_id id,
  correspondance_account_id id,
  -- CompteNum and CompteLib; of an account of a supplier, customer or employee those of its collective account, with its
  -- own CompAuxNum and CompAuxLib. Both numbers identify the account in later files.
  filed_number text,
  filed_name text,
  auxiliary_number text,
  auxiliary_name text,
  CONSTRAINT accounts_pkey PRIMARY KEY (schema_id, folder_id, id),
  CONSTRAINT accounts_schema_id_folder_id_number_key UNIQUE (schema_id, folder_id, number),
  CONSTRAINT accounts_auxiliary_number_check CHECK (auxiliary_number <> ''::text),
  CONSTRAINT accounts_check CHECK ((filed_number IS NULL) = (filed_name IS NULL)),
  CONSTRAINT accounts_check1 CHECK (auxiliary_number IS NULL OR filed_number IS NOT NULL),
  CONSTRAINT accounts_check2 CHECK ((auxiliary_number IS NULL) = (auxiliary_name IS NULL)),
  CONSTRAINT accounts_number_check CHECK (number ~ '^[0-9A-Z]{1,40}$'::text)
);
CREATE UNIQUE INDEX accounts_as_filed ON accounts USING btree (schema_id, folder_id, filed_number, auxiliary_number) NULLS NOT DISTINCT WHERE filed_number IS NOT NULL;
CREATE TRIGGER ledger_version_delete AFTER DELETE ON accounts REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('accounts', 'id');
CREATE TRIGGER ledger_version_insert AFTER INSERT ON accounts REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON accounts REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('accounts', 'id');
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON accounts FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE accounts ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON accounts TO grandlivre_service;

-- The fingerprint of MASTER_KEY (src/auth/master-key.ts), once a service has adopted its key. A table of its own: a new
-- column of service_state would hold up every request until the end of the migration.
CREATE TABLE adopted_key (
  one boolean DEFAULT true NOT NULL,
  fingerprint bytea NOT NULL,
  CONSTRAINT adopted_key_pkey PRIMARY KEY (one),
  CONSTRAINT adopted_key_fingerprint_check CHECK (length(fingerprint) = 32),
  CONSTRAINT adopted_key_one_check CHECK (one)
);

-- The last batch of each process: a batch is appended once, even if its sender lost the answer and sends it again.
CREATE TABLE audit_batches (
  sender uuid NOT NULL,
  batch bigint NOT NULL,
  at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT audit_batches_pkey PRIMARY KEY (sender)
);
ALTER TABLE audit_batches ENABLE ROW LEVEL SECURITY;

-- One row: the last number and its hash. It is locked while rows are appended, which puts them in one order.
CREATE TABLE audit_head (
  one boolean DEFAULT true NOT NULL,
  count bigint NOT NULL,
  hash bytea NOT NULL,
  -- The epoch of the last row.
  epoch integer NOT NULL,
  CONSTRAINT audit_head_pkey PRIMARY KEY (one),
  CONSTRAINT audit_head_one_check CHECK (one)
);
ALTER TABLE audit_head ENABLE ROW LEVEL SECURITY;

-- The audit: what was sent to whom, and what staff did (docs/operators/audit.md). Rows are appended by
-- functions/audit.sql alone, each with the hash of the one before.
CREATE TABLE audit_rows (
  -- 1, 2, 3 and so on, without gaps.
  number bigint NOT NULL,
  -- When the answer ended, or the act.
  at timestamp with time zone NOT NULL,
  third_party_id bigint,
  token_id bigint,
  -- Of acts of staff: who, and the login of the database.
  staff text,
  -- `GET /api/v1/mad/movements`, `token issue`.
  act text NOT NULL,
  schema_id bigint,
  folder_id bigint,
  request_id text,
  -- JSON, as it was hashed: the selection of a request, what an act concerned.
  details text NOT NULL,
  rows bigint,
  -- Of the body, as sent.
  bytes bigint,
  -- Of the content, hexadecimal.
  sha256 text,
  cursor text,
  -- sent, unchanged, cut, refused, failed; done: an act of staff.
  outcome text NOT NULL,
  -- Of the error.
  code text,
  hash bytea NOT NULL,
  CONSTRAINT audit_rows_pkey PRIMARY KEY (number)
);
CREATE INDEX audit_rows_by_folder ON audit_rows USING btree (folder_id, number) WHERE folder_id IS NOT NULL;
CREATE TRIGGER refuse_change BEFORE DELETE OR UPDATE ON audit_rows FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit_rows FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();
ALTER TABLE audit_rows ENABLE ROW LEVEL SECURITY;

-- One row: the number and hash of the last row that retention deleted, signed with a key that the database does not
-- have.
CREATE TABLE audit_start (
  one boolean DEFAULT true NOT NULL,
  count bigint NOT NULL,
  hash bytea NOT NULL,
  at timestamp with time zone,
  signature bytea,
  CONSTRAINT audit_start_pkey PRIMARY KEY (one),
  CONSTRAINT audit_start_one_check CHECK (one)
);
ALTER TABLE audit_start ENABLE ROW LEVEL SECURITY;

CREATE TABLE axes (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  code text NOT NULL,
  name text NOT NULL,
  default_section_id id,
  CONSTRAINT axes_pkey PRIMARY KEY (schema_id, folder_id, id),
  CONSTRAINT axes_schema_id_folder_id_code_key UNIQUE (schema_id, folder_id, code)
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON axes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('axes', 'id');
CREATE TRIGGER ledger_version_insert AFTER INSERT ON axes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('axes', 'id');
CREATE TRIGGER ledger_version_update AFTER UPDATE ON axes REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('axes', 'id');
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON axes FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON axes FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE axes ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON axes TO grandlivre_service;

CREATE TABLE banks (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  rib text,
  iban text NOT NULL,
  bic text NOT NULL,
  account_id id,
  journal_id id NOT NULL,
  is_default boolean DEFAULT false NOT NULL,
  CONSTRAINT banks_pkey PRIMARY KEY (schema_id, folder_id, id)
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON banks REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_insert AFTER INSERT ON banks REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON banks REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON banks FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON banks FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE banks ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON banks TO grandlivre_service;

-- The company behind an account with root 401 or 411.
CREATE TABLE companies (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  account_id id NOT NULL,
  name text NOT NULL,
  siren text,
  ceo text,
  payment_id id,
  vat_id id,
  address address,
  ape_producer_id text,
  ape_code text,
  ape_name text,
  ibans text[] DEFAULT '{}'::text[] NOT NULL,
  -- [{firstname, lastname, phoneNumber, role, email}]
  contacts jsonb DEFAULT '[]'::jsonb NOT NULL,
  -- {referent, language, group, archived}
  miscellaneous jsonb,
  CONSTRAINT companies_pkey PRIMARY KEY (schema_id, folder_id, account_id),
  CONSTRAINT companies_siren_check CHECK (siren ~ '^\d{9}(\d{5})?$'::text)
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON companies REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_insert AFTER INSERT ON companies REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON companies REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON companies FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON companies FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE companies ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON companies TO grandlivre_service;

CREATE TABLE console_keys (
  id bigint DEFAULT draw('console_key_ids'::regclass) NOT NULL,
  -- The name of a member of staff, as the audit quotes it.
  name text NOT NULL,
  key_hash bytea NOT NULL,
  created_at timestamp(0) with time zone DEFAULT now() NOT NULL,
  used_at timestamp(0) with time zone,
  revoked_at timestamp(0) with time zone,
  CONSTRAINT console_keys_pkey PRIMARY KEY (id),
  CONSTRAINT console_keys_key_hash_key UNIQUE (key_hash),
  CONSTRAINT console_keys_key_hash_check CHECK (length(key_hash) = 32)
);
CREATE UNIQUE INDEX console_keys_in_use ON console_keys USING btree (name) WHERE revoked_at IS NULL;

-- Read and written by the owner of the tables alone, as console_keys.
CREATE TABLE console_sessions (
  session_hash bytea NOT NULL,
  key_id bigint NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  CONSTRAINT console_sessions_pkey PRIMARY KEY (session_hash),
  CONSTRAINT console_sessions_session_hash_check CHECK (length(session_hash) = 32)
);

CREATE TABLE deliveries (
  schema_id id NOT NULL,
  id bigint DEFAULT draw('delivery_ids'::regclass) NOT NULL,
  subscription_id id NOT NULL,
  first_event bigint NOT NULL,
  last_event bigint NOT NULL,
  events integer NOT NULL,
  -- As it is signed and sent at every attempt; null once it is delivered.
  body bytea,
  state text DEFAULT 'pending'::text NOT NULL,
  -- Attempts so far; who records the next one names their number.
  attempts integer DEFAULT 0 NOT NULL,
  -- How many of these were made before staff replayed it: the retry table counts from there.
  attempts_before_replay integer DEFAULT 0 NOT NULL,
  is_replay boolean DEFAULT false NOT NULL,
  next_attempt_at timestamp with time zone,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  finished_at timestamp with time zone,
  -- Null in deliveries of 0.2.0, whose events had no numbers.
  first_sequence bigint,
  last_sequence bigint,
  CONSTRAINT deliveries_pkey PRIMARY KEY (schema_id, id),
  CONSTRAINT deliveries_check CHECK (first_event <= last_event),
  CONSTRAINT deliveries_check1 CHECK (attempts_before_replay >= 0 AND attempts_before_replay <= attempts),
  CONSTRAINT deliveries_check2 CHECK (body IS NOT NULL OR state = 'delivered'::text),
  CONSTRAINT deliveries_check3 CHECK ((next_attempt_at IS NOT NULL) = (state = 'pending'::text)),
  CONSTRAINT deliveries_check4 CHECK ((finished_at IS NULL) = (state = 'pending'::text)),
  CONSTRAINT deliveries_events_check CHECK (events >= 1 AND events <= 100),
  CONSTRAINT deliveries_sequence_check CHECK ((first_sequence IS NULL) = (last_sequence IS NULL) AND (last_sequence - first_sequence + 1) = events),
  CONSTRAINT deliveries_state_check CHECK (state = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text]))
);
CREATE INDEX deliveries_due ON deliveries USING btree (next_attempt_at) WHERE state = 'pending'::text;
-- What an owner looks for among all that was delivered.
CREATE INDEX deliveries_failed ON deliveries USING btree (subscription_id, id) WHERE state = 'failed'::text;
CREATE INDEX deliveries_finished ON deliveries USING btree (schema_id, finished_at);
CREATE INDEX deliveries_of_subscription ON deliveries USING btree (subscription_id, id);
-- A subscription begins its next batch only when this one has ended, which keeps the order. Replays are sent between
-- batches and promise none.
CREATE UNIQUE INDEX deliveries_one_pending ON deliveries USING btree (subscription_id) WHERE state = 'pending'::text AND NOT is_replay;
-- What waits, found without a look at all that was delivered before.
CREATE INDEX deliveries_pending ON deliveries USING btree (subscription_id, id) WHERE state = 'pending'::text;
ALTER TABLE deliveries ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON deliveries TO grandlivre_service;

CREATE TABLE delivery_attempts (
  schema_id id NOT NULL,
  delivery_id bigint NOT NULL,
  number integer NOT NULL,
  at timestamp(3) with time zone NOT NULL,
  -- Null: there was no answer.
  status integer,
  latency_ms integer NOT NULL,
  -- The beginning of the answer.
  answer bytea,
  -- Why it failed, where the status does not say so.
  error text,
  CONSTRAINT delivery_attempts_pkey PRIMARY KEY (schema_id, delivery_id, number),
  CONSTRAINT delivery_attempts_answer_check CHECK (length(answer) <= 4096),
  CONSTRAINT delivery_attempts_latency_ms_check CHECK (latency_ms >= 0),
  CONSTRAINT delivery_attempts_number_check CHECK (number > 0),
  CONSTRAINT delivery_attempts_status_check CHECK (status >= 100 AND status <= 999)
);
ALTER TABLE delivery_attempts ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON delivery_attempts TO grandlivre_service;

-- The employee behind an account with root 421.
CREATE TABLE employees (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  account_id id NOT NULL,
  first_name text,
  last_name text,
  email text,
  phone_number text,
  phone_number_bis text,
  nir text,
  profession text,
  payment_id id,
  address address,
  ibans text[] DEFAULT '{}'::text[] NOT NULL,
  contacts jsonb DEFAULT '[]'::jsonb NOT NULL,
  -- {referent, language, group, archived}
  miscellaneous jsonb,
  doubtful_account_id id,
  CONSTRAINT employees_pkey PRIMARY KEY (schema_id, folder_id, account_id)
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON employees REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_insert AFTER INSERT ON employees REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON employees REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON employees FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON employees FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE employees ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON employees TO grandlivre_service;

CREATE TABLE entries (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  exercice_id id NOT NULL,
  journal_id id NOT NULL,
  date date NOT NULL,
  due_date date,
  accounted_at date NOT NULL,
  created_at timestamp(0) with time zone NOT NULL,
  -- Null: a draft, which awaits validation.
  validated_at date,
  source text NOT NULL,
  -- The partner that sent it, for the source API.
  third_party_id id,
  currency text NOT NULL,
  -- Only where the currency is not the folder's.
  rate numeric(18,6),
  comment text,
  -- {partnerId, json}
  partner_metadata jsonb,
  -- File names and their addresses.
  attachments jsonb,
  -- EcritureNum of a FEC: as filed, or given when the entry is validated. Null: a draft without one, or a FEC imported
  -- by 0.2.0.
  number text,
  -- Columns of a FEC by name, of all lines of the entry, where they differ from what the ledger would give. json, not
  -- jsonb: COPY writes it as it is stored.
  filed json,
  CONSTRAINT entries_pkey PRIMARY KEY (schema_id, folder_id, id),
  CONSTRAINT entries_schema_id_folder_id_exercice_id_id_key UNIQUE (schema_id, folder_id, exercice_id, id),
  CONSTRAINT entries_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  CONSTRAINT entries_number_check CHECK (number <> ''::text)
);
CREATE INDEX entries_by_accounted_at ON entries USING btree (schema_id, folder_id, accounted_at);
CREATE INDEX entries_by_created_at ON entries USING btree (schema_id, folder_id, created_at);
-- These indexes select movements: a month, a source or the drafts cost what they hold, not what the folder holds.
CREATE INDEX entries_by_date ON entries USING btree (schema_id, folder_id, date);
CREATE INDEX entries_by_partner_id ON entries USING btree (schema_id, folder_id, (partner_metadata ->> 'partnerId'::text)) WHERE length(partner_metadata ->> 'partnerId'::text) <= 255;
CREATE INDEX entries_by_source ON entries USING btree (schema_id, folder_id, source);
-- Finds the folders of a partner that changes its code or name, which their exports show. Partial: a ledger without such
-- entries pays nothing for it.
CREATE INDEX entries_by_third_party ON entries USING btree (third_party_id, schema_id, folder_id) WHERE third_party_id IS NOT NULL;
CREATE INDEX entries_draft ON entries USING btree (schema_id, folder_id) WHERE validated_at IS NULL;
CREATE TRIGGER in_exercice_insert AFTER INSERT ON entries REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION entries_lie_in_exercice();
CREATE TRIGGER in_exercice_update AFTER UPDATE ON entries REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION entries_lie_in_exercice();
CREATE TRIGGER ledger_version_delete AFTER DELETE ON entries REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('entries', 'id');
CREATE TRIGGER ledger_version_insert AFTER INSERT ON entries REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('entries', 'id');
CREATE TRIGGER ledger_version_update AFTER UPDATE ON entries REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('entries', 'id');
CREATE TRIGGER number_insert AFTER INSERT ON entries REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION number_entries();
CREATE TRIGGER number_update AFTER UPDATE ON entries REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION number_entries();
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON entries FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_other_number BEFORE UPDATE OF number, journal_id, exercice_id ON entries FOR EACH ROW WHEN (old.number IS NOT NULL AND (new.number IS DISTINCT FROM old.number OR new.exercice_id::bigint <> old.exercice_id::bigint OR new.journal_id::bigint <> old.journal_id::bigint)) EXECUTE FUNCTION refuse_other_number();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE entries ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON entries TO grandlivre_service;

-- The last number of an entry by journal and exercice, from the first one that is given on (functions/numbers.sql).
CREATE TABLE entry_numbers (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  exercice_id id NOT NULL,
  journal_id id NOT NULL,
  last bigint NOT NULL,
  CONSTRAINT entry_numbers_pkey PRIMARY KEY (schema_id, folder_id, exercice_id, journal_id)
);
ALTER TABLE entry_numbers ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON entry_numbers TO grandlivre_service;

-- Erasure of folders, firms and third parties (src/erasure/erase.ts): what was begun and not ended goes on in the next
-- run of its command.
CREATE TABLE erasures (
  kind text NOT NULL,
  id id NOT NULL,
  -- Of a folder or firm.
  of_schema id,
  -- With which the folder went.
  of_firm id,
  -- Of a third party.
  code text,
  begun_at timestamp(0) with time zone DEFAULT now() NOT NULL,
  ended_at timestamp(0) with time zone,
  backups_until date,
  -- Numbers of rows that were removed, by their table; files as `files`.
  gone json DEFAULT '{}'::json NOT NULL,
  -- Of a folder, whose files lie in the store by these ids.
  export_ids text[] DEFAULT '{}'::text[] NOT NULL,
  CONSTRAINT erasures_pkey PRIMARY KEY (kind, id),
  CONSTRAINT erasures_kind_check CHECK (kind = ANY (ARRAY['folder'::text, 'firm'::text, 'partner'::text]))
);
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;

-- What happened, kept until retention. There is no row per event and subscriber: an import of 180,000 entries is 180,000
-- narrow events, however many listen. No foreign keys: the checks would cost such an import as much again as the rows.
CREATE TABLE events (
  schema_id id NOT NULL,
  id bigint DEFAULT draw('event_ids'::regclass) NOT NULL,
  -- Null: of the schema as a whole.
  folder_id id,
  name text NOT NULL,
  operation text NOT NULL,
  scope json NOT NULL,
  data json NOT NULL,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  -- 0: it names neither firm nor folder. Null: every subscription of a firm had passed it when this column was added.
  firm_id bigint,
  -- The epoch in which it was committed.
  epoch integer DEFAULT pg_sequence_last_value('epoch'::regclass)::integer NOT NULL,
  CONSTRAINT events_pkey PRIMARY KEY (schema_id, id),
  CONSTRAINT events_operation_check CHECK (operation = ANY (ARRAY['CREATE'::text, 'UPDATE'::text, 'DELETE'::text, 'VOID'::text]))
);
CREATE INDEX events_by_firm ON events USING btree (schema_id, firm_id, name, id) WHERE firm_id IS NOT NULL;
CREATE INDEX events_by_folder ON events USING btree (schema_id, folder_id, name, id) WHERE folder_id IS NOT NULL;
-- The next event of some kinds after a position, in a schema and (events_by_folder) in one of its folders: one probe per
-- kind.
CREATE INDEX events_by_name ON events USING btree (schema_id, name, id);
CREATE TRIGGER note_firm BEFORE INSERT ON events FOR EACH ROW WHEN (new.firm_id IS NULL) EXECUTE FUNCTION note_firm_of_event();
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT ON events TO grandlivre_service;

CREATE TABLE exercices (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  start_date date NOT NULL,
  end_date date NOT NULL,
  lettering text DEFAULT 'MONO'::text NOT NULL,
  closed_at timestamp(0) with time zone,
  closed_by_id id,
  closed_by_first_name text,
  closed_by_last_name text,
  -- Names of the columns beyond the standard's, in the order of the file. Null: not imported from a FEC, or by 0.2.0.
  filed_columns text[],
  -- Whether the lines of some entry are scattered over the file, so that its order is not that of entries.
  scattered boolean DEFAULT false NOT NULL,
  CONSTRAINT exercices_pkey PRIMARY KEY (schema_id, folder_id, id),
  CONSTRAINT exercices_check CHECK (end_date > start_date),
  CONSTRAINT exercices_lettering_check CHECK (lettering = ANY (ARRAY['MONO'::text, 'MULTI'::text]))
);
CREATE TRIGGER holds_entries AFTER UPDATE OF start_date, end_date ON exercices FOR EACH ROW EXECUTE FUNCTION exercice_holds_entries();
CREATE TRIGGER ledger_version_delete AFTER DELETE ON exercices REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_insert AFTER INSERT ON exercices REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON exercices REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON exercices FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON exercices FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE exercices ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON exercices TO grandlivre_service;

-- Full exports: what was asked, how far it is, what became of it. The queue in the schema pgboss says which process
-- works on which; this table has the last word (src/jobs/jobs.sql.ts).
CREATE TABLE exports (
  schema_id id NOT NULL,
  id text NOT NULL,
  folder_id id NOT NULL,
  version text NOT NULL,
  format text NOT NULL,
  exercice_id id,
  period_start date,
  period_end date,
  -- Ascending, each once; empty: all.
  journal_ids bigint[] DEFAULT '{}'::bigint[] NOT NULL,
  -- Equal for triggers that ask for the same.
  identity text NOT NULL,
  -- Of all exports with one identity the one that answers a trigger, for an hour. By the unique index exports_latest two
  -- triggers at the same instant, in any two processes, agree on one.
  latest boolean DEFAULT true NOT NULL,
  -- Of the trigger.
  request_id text NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  state text DEFAULT 'queued'::text NOT NULL,
  -- Rises with each claim.
  attempt integer DEFAULT 0 NOT NULL,
  -- When the process that claimed it last renewed its lease.
  renewed_at timestamp with time zone,
  rows_total bigint,
  rows bigint DEFAULT 0 NOT NULL,
  bytes bigint DEFAULT 0 NOT NULL,
  finished_at timestamp with time zone,
  -- In the store; null again once the file has expired.
  file_key text,
  sha256 text,
  -- Minor units.
  debit numeric(38,0),
  credit numeric(38,0),
  -- The day whose state the file shows.
  snapshot_on date,
  reason text,
  compression text,
  encoding text,
  columns text,
  -- The last day of the exercice, which the name of a FEC says. A file may outlive its exercice.
  exercice_end date,
  -- The file as stored; `bytes` and `sha256` are its content's.
  file_bytes bigint,
  file_sha256 text,
  -- What the file leaves out or alters: counts by name.
  notes json,
  -- Of the last claim (src/jobs/jobs.sql.ts).
  epoch integer,
  -- Null: with it. Otherwise the same as `attempt`: a process of 0.2.0, which knows nothing of this column, cannot claim
  -- such an export, which it would write with that data.
  attempt_without_employees integer,
  CONSTRAINT exports_pkey PRIMARY KEY (schema_id, id),
  CONSTRAINT exports_check CHECK ((period_start IS NULL) = (period_end IS NULL)),
  CONSTRAINT exports_check1 CHECK (exercice_id IS NULL OR period_start IS NULL),
  CONSTRAINT exports_check2 CHECK ((finished_at IS NOT NULL) = (state = ANY (ARRAY['done'::text, 'failed'::text]))),
  CONSTRAINT exports_check3 CHECK (num_nulls(sha256, debit, credit, snapshot_on) =
CASE
    WHEN state = 'done'::text THEN 0
    ELSE 4
END),
  CONSTRAINT exports_check4 CHECK ((reason IS NOT NULL) = (state = 'failed'::text)),
  CONSTRAINT exports_check5 CHECK (file_key IS NULL OR state = 'done'::text),
  CONSTRAINT exports_check6 CHECK (attempt > 0 OR (state = ANY (ARRAY['queued'::text, 'failed'::text]))),
  CONSTRAINT exports_check7 CHECK (attempt_without_employees = attempt),
  CONSTRAINT exports_columns_check CHECK (columns = 'extended'::text),
  CONSTRAINT exports_compression_check CHECK (compression = ANY (ARRAY['gzip'::text, 'zstd'::text])),
  CONSTRAINT exports_encoding_check CHECK (encoding = 'utf-8'::text),
  CONSTRAINT exports_file_sha256_check CHECK (file_sha256 ~ '^[0-9a-f]{64}$'::text),
  CONSTRAINT exports_format_check CHECK (format = ANY (ARRAY['JSON'::text, 'TRA'::text, 'FEC'::text, 'CSV'::text, 'PARQUET'::text])),
  CONSTRAINT exports_id_check CHECK (id ~ '^export_[0-9a-f]{32}$'::text),
  CONSTRAINT exports_identity_check CHECK (identity ~ '^[0-9a-f]{64}$'::text),
  CONSTRAINT exports_sha256_check CHECK (sha256 ~ '^[0-9a-f]{64}$'::text),
  CONSTRAINT exports_state_check CHECK (state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text]))
);
-- The console lists full exports of all tenants: those that ended last, and (exports_open) those that are open.
CREATE INDEX exports_ended ON exports USING btree (finished_at DESC) WHERE finished_at IS NOT NULL;
CREATE INDEX exports_finished ON exports USING btree (schema_id, finished_at);
CREATE UNIQUE INDEX exports_latest ON exports USING btree (schema_id, folder_id, identity) WHERE latest;
-- What the console lists of all tenants: the exports of one folder.
CREATE INDEX exports_of_folder ON exports USING btree (folder_id, created_at);
CREATE INDEX exports_open ON exports USING btree (created_at) WHERE state = ANY (ARRAY['queued'::text, 'running'::text]);
CREATE TRIGGER end_once BEFORE UPDATE OF state ON exports FOR EACH ROW WHEN ((old.state = ANY (ARRAY['done'::text, 'failed'::text])) AND new.state <> old.state) EXECUTE FUNCTION exports_end_once();
ALTER TABLE exports ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON exports TO grandlivre_service;

CREATE TABLE firms (
  schema_id id NOT NULL,
  id id NOT NULL,
  name text NOT NULL,
  siret text,
  CONSTRAINT firms_pkey PRIMARY KEY (schema_id, id),
  CONSTRAINT firms_siret_check CHECK (siret ~ '^\d{9}(\d{5})?$'::text)
);
CREATE TRIGGER notify_lists_of_firm AFTER UPDATE ON firms FOR EACH ROW WHEN (old.name <> new.name) EXECUTE FUNCTION notify_lists();
ALTER TABLE firms ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON firms TO grandlivre_service;

CREATE TABLE folders (
  schema_id id NOT NULL,
  id id NOT NULL,
  firm_id id NOT NULL,
  name text NOT NULL,
  reference text,
  siret text,
  -- Minor units, as all money: cents.
  capital bigint DEFAULT 0 NOT NULL,
  currency text DEFAULT 'EUR'::text NOT NULL,
  address address DEFAULT ROW(NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text)::address NOT NULL,
  contact_first_name text,
  contact_last_name text,
  contact_phone_number text,
  contact_mobile_phone_number text,
  contact_mail text,
  rcs_producer_id text DEFAULT ''::text NOT NULL,
  rcs_name text DEFAULT ''::text NOT NULL,
  -- Changes with every transaction that changes the folder's ledger (advance_ledger_version). An ETag names it, so it is
  -- drawn from a sequence and never comes back.
  ledger_version bigint DEFAULT 0 NOT NULL,
  created_at timestamp(0) with time zone DEFAULT now() NOT NULL,
  erased_at timestamp(0) with time zone,
  CONSTRAINT folders_pkey PRIMARY KEY (schema_id, id),
  CONSTRAINT folders_currency_check CHECK (currency ~ '^[A-Z]{3}$'::text),
  CONSTRAINT folders_siret_check CHECK (siret ~ '^\d{9}(\d{5})?$'::text)
);
CREATE INDEX folders_erased ON folders USING btree (id) WHERE erased_at IS NOT NULL;
CREATE TRIGGER first_ledger_change AFTER INSERT ON folders FOR EACH ROW EXECUTE FUNCTION begin_ledger();
CREATE TRIGGER first_ledger_version BEFORE INSERT ON folders FOR EACH ROW EXECUTE FUNCTION begin_ledger();
CREATE TRIGGER ledger_version BEFORE UPDATE ON folders FOR EACH ROW WHEN (old.* IS DISTINCT FROM new.* AND old.ledger_version = new.ledger_version) EXECUTE FUNCTION advance_own_ledger_version();
CREATE TRIGGER notify_lists AFTER INSERT OR DELETE ON folders FOR EACH ROW EXECUTE FUNCTION notify_lists();
CREATE CONSTRAINT TRIGGER publish_ledger_change AFTER UPDATE ON folders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.ledger_version <> new.ledger_version) EXECUTE FUNCTION publish_ledger_change();
CREATE CONSTRAINT TRIGGER publish_move AFTER UPDATE ON folders DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.firm_id::bigint <> new.firm_id::bigint) EXECUTE FUNCTION publish_move();
ALTER TABLE folders ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON folders TO grandlivre_service;

-- What a subscription matched before a change of its kinds or folders: valid for numbers up to last_sequence.
CREATE TABLE former_filters (
  schema_id id NOT NULL,
  subscription_id id NOT NULL,
  last_sequence bigint NOT NULL,
  on_events text[] NOT NULL,
  folder_ids bigint[] NOT NULL,
  CONSTRAINT former_filters_pkey PRIMARY KEY (schema_id, subscription_id, last_sequence)
);
ALTER TABLE former_filters ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON former_filters TO grandlivre_service;

CREATE TABLE journals (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  -- As its users write it; partners read it as customerReferenceCode.
  code text NOT NULL,
  name text NOT NULL,
  type text NOT NULL,
  counterpart_account_id id,
  locked boolean DEFAULT false NOT NULL,
  -- JournalLib of a FEC.
  filed_name text,
  CONSTRAINT journals_pkey PRIMARY KEY (schema_id, folder_id, id),
  CONSTRAINT journals_schema_id_folder_id_code_key UNIQUE (schema_id, folder_id, code),
  CONSTRAINT journals_type_check CHECK (type = ANY (ARRAY['ACH'::text, 'VTE'::text, 'BQ'::text, 'CAISSE'::text, 'A_EXT'::text, 'EXT'::text, 'AN'::text, 'NFD'::text, 'RBAL'::text, 'OD'::text, 'OD_AUDIT'::text, 'OD_PAIE'::text, 'OD_LET'::text, 'OD_DECL_FISCALE'::text, 'OD_EXC'::text]))
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON journals REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('journals', 'id');
CREATE TRIGGER ledger_version_insert AFTER INSERT ON journals REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON journals REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('journals', 'id');
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON journals FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON journals FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE journals ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON journals TO grandlivre_service;

-- Digests of all movements of a folder, drafts among them, as rows of COPY, by consecutive ranges of entry ids; and of
-- its other tables. A range reaches to before the next one's beginning, and the last one to the greatest id.
CREATE TABLE ledger_blocks (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  -- The ledger version, epoch and rendering of these digests, as a cursor.
  cursor text NOT NULL,
  version bigint NOT NULL,
  first_ids bigint[] NOT NULL,
  rows integer[] NOT NULL,
  -- 32 bytes of SHA-256 each.
  digests bytea NOT NULL,
  -- The same, of the other tables in the order of the stream.
  tables bytea NOT NULL,
  CONSTRAINT ledger_blocks_pkey PRIMARY KEY (schema_id, folder_id),
  CONSTRAINT ledger_blocks_check CHECK (cardinality(rows) = cardinality(first_ids) AND length(digests) = (32 * cardinality(first_ids)))
);
ALTER TABLE ledger_blocks ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON ledger_blocks TO grandlivre_service;

-- One row per statement that changed a ledger, with the version that the statement gave its folder.
CREATE TABLE ledger_changes (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  version bigint NOT NULL,
  -- What `ids` are of. Movements count as their entries. `forgotten`: changes up to this version are not remembered.
  kind text NOT NULL,
  -- Touched by the statement, old and new; may hold more.
  ids int8multirange NOT NULL,
  logged_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  CONSTRAINT ledger_changes_pkey PRIMARY KEY (schema_id, folder_id, version),
  CONSTRAINT ledger_changes_kind_check CHECK (kind = ANY (ARRAY['entries'::text, 'accounts'::text, 'journals'::text, 'payments'::text, 'axes'::text, 'sections'::text, 'third_parties'::text, 'forgotten'::text]))
);
CREATE INDEX ledger_changes_by_time ON ledger_changes USING btree (logged_at) WHERE kind <> 'forgotten'::text;
ALTER TABLE ledger_changes ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON ledger_changes TO grandlivre_service;

CREATE TABLE migrations (
  version integer NOT NULL,
  name text NOT NULL,
  applied_at timestamp(0) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT migrations_pkey PRIMARY KEY (version)
);
GRANT SELECT ON migrations TO grandlivre_service;

-- Digests of the validated movements of an exercice, as lines of NDJSON, by consecutive ranges of entry ids. A range
-- reaches to before the next one's beginning, and the last one to the greatest id.
CREATE TABLE movement_blocks (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  exercice_id id NOT NULL,
  -- The ledger version, epoch and rendering of these digests, as a cursor.
  cursor text NOT NULL,
  version bigint NOT NULL,
  first_ids bigint[] NOT NULL,
  rows integer[] NOT NULL,
  -- 32 bytes of SHA-256 each.
  digests bytea NOT NULL,
  CONSTRAINT movement_blocks_pkey PRIMARY KEY (schema_id, folder_id, exercice_id),
  CONSTRAINT movement_blocks_check CHECK (cardinality(rows) = cardinality(first_ids) AND length(digests) = (32 * cardinality(first_ids)))
);
ALTER TABLE movement_blocks ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON movement_blocks TO grandlivre_service;

-- Exercice_id is also in entries, and the foreign key keeps both equal: an exercice is one range of one index, read in
-- the order of the answer and without a join.
CREATE TABLE movements (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  exercice_id id NOT NULL,
  entry_id id NOT NULL,
  id id NOT NULL,
  account_id id NOT NULL,
  description text NOT NULL,
  due_date date,
  free_number text,
  invoice_number text NOT NULL,
  debit bigint NOT NULL,
  credit bigint NOT NULL,
  payment_id id,
  lettering_state text DEFAULT 'none'::text NOT NULL,
  lettering_code text,
  -- Analytic shares by threes: section id, amount in minor units, rate in ten-thousandths of a percent. Shares of one
  -- axis stand together. They are written and read with their movement only: as a table of their own they would be a
  -- third stream to merge into every export.
  shares bigint[],
  attachments jsonb,
  -- Columns of the line of a FEC that differ from those of its entry.
  filed json,
  -- Its place in the file that its exercice was imported from. Null: its id. Only lines that a later import inserts or
  -- moves have one, between those of their neighbours.
  place numeric,
  CONSTRAINT movements_pkey PRIMARY KEY (schema_id, folder_id, exercice_id, entry_id, id),
  CONSTRAINT movements_schema_id_folder_id_id_key UNIQUE (schema_id, folder_id, id),
  CONSTRAINT movements_check CHECK (debit = 0 OR credit = 0),
  CONSTRAINT movements_check1 CHECK ((lettering_state = 'none'::text) = (lettering_code IS NULL)),
  CONSTRAINT movements_lettering_state_check CHECK (lettering_state = ANY (ARRAY['none'::text, 'partial'::text, 'complete'::text])),
  CONSTRAINT movements_shares_check CHECK ((array_length(shares, 1) % 3) = 0)
);
CREATE INDEX movements_by_account ON movements USING btree (schema_id, folder_id, exercice_id, account_id);
-- The names of an entry other than its id (entries_named). Invoice numbers that differ in their last character share a
-- key: PostgreSQL stores equal keys once, so the index takes 10 bytes for a movement instead of 38, and a look-up
-- compares some tens of movements. A hash bounds the key. Partner ids of more than 255 characters are not looked up: an
-- index refuses texts of more than 2,704 bytes.
CREATE INDEX movements_by_invoice_number ON movements USING btree (folder_id, hashtext("left"(invoice_number, '-1'::integer))) WHERE invoice_number <> ''::text;
CREATE INDEX movements_lettered ON movements USING btree (schema_id, folder_id, exercice_id, lettering_state) WHERE lettering_state <> 'none'::text;
CREATE TRIGGER ledger_version_delete AFTER DELETE ON movements REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('entries', 'entry_id');
CREATE TRIGGER ledger_version_insert AFTER INSERT ON movements REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('entries', 'entry_id');
CREATE TRIGGER ledger_version_update AFTER UPDATE ON movements REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('entries', 'entry_id');
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON movements FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON movements FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE movements ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON movements TO grandlivre_service;

-- While `rotate-key` runs, and after one that was cut off: the fingerprint of the key that secrets are re-encrypted with
-- (src/auth/rotation/rotation.ts). A table of its own, because a new column of adopted_key would hold up every probe
-- until the end of the migration.
CREATE TABLE next_key (
  one boolean DEFAULT true NOT NULL,
  fingerprint bytea NOT NULL,
  CONSTRAINT next_key_pkey PRIMARY KEY (one),
  CONSTRAINT next_key_fingerprint_check CHECK (length(fingerprint) = 32),
  CONSTRAINT next_key_one_check CHECK (one)
);

-- Limits of one partner in place of the settings (docs/operators.md#limits-of-a-partner). Null: as the setting. Not in
-- third_parties: a new column would hold up every request until the end of the migration, and wait for those under way.
CREATE TABLE partner_limits (
  third_party_id id NOT NULL,
  requests integer,
  window_ms integer,
  concurrent integer,
  CONSTRAINT partner_limits_pkey PRIMARY KEY (third_party_id),
  CONSTRAINT partner_limits_concurrent_check CHECK (concurrent > 0),
  CONSTRAINT partner_limits_requests_check CHECK (requests > 0),
  CONSTRAINT partner_limits_window_ms_check CHECK (window_ms > 0)
);
GRANT SELECT ON partner_limits TO grandlivre_service;

-- Payment modes by their internal code. Partners see the names and codes of formats/mad/payment.ts.
CREATE TABLE payments (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  code text NOT NULL,
  CONSTRAINT payments_pkey PRIMARY KEY (schema_id, folder_id, id)
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON payments REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('payments', 'id');
CREATE TRIGGER ledger_version_insert AFTER INSERT ON payments REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON payments REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('payments', 'id');
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON payments FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON payments FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE payments ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON payments TO grandlivre_service;

-- Requests of a token in its current window. Unlogged: after a crash every window starts again, which is harmless.
CREATE UNLOGGED TABLE rate_windows (
  schema_id id NOT NULL,
  token_id id NOT NULL,
  started_at timestamp with time zone NOT NULL,
  requests integer NOT NULL,
  CONSTRAINT rate_windows_pkey PRIMARY KEY (schema_id, token_id)
) WITH (fillfactor=50);
ALTER TABLE rate_windows ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON rate_windows TO grandlivre_service;

-- Tenants. Every table of a tenant has schema_id as the first column of its key: row-level security compares one column,
-- and a distributed PostgreSQL can shard on it. third_parties and service_state belong to no tenant; the service role
-- sees of them what functions give it.
CREATE TABLE schemas (
  schema_id id NOT NULL,
  name text NOT NULL,
  created_at timestamp(0) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT schemas_pkey PRIMARY KEY (schema_id)
);
ALTER TABLE schemas ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON schemas TO grandlivre_service;

CREATE TABLE sections (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  axis_id id NOT NULL,
  code text NOT NULL,
  name text NOT NULL,
  account_roots text[] DEFAULT '{}'::text[] NOT NULL,
  closed boolean DEFAULT false NOT NULL,
  CONSTRAINT sections_pkey PRIMARY KEY (schema_id, folder_id, id),
  CONSTRAINT sections_schema_id_folder_id_axis_id_code_key UNIQUE (schema_id, folder_id, axis_id, code)
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON sections REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('sections', 'id');
CREATE TRIGGER ledger_version_insert AFTER INSERT ON sections REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('sections', 'id');
CREATE TRIGGER ledger_version_update AFTER UPDATE ON sections REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version('sections', 'id');
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON sections FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON sections FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE sections ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON sections TO grandlivre_service;

-- The events of a schema from first_event to last_event that match the subscription have, in the order of their ids, the
-- numbers first_sequence to last_sequence. Counted from the end, as retention deletes the first of them first.
CREATE TABLE sequence_runs (
  schema_id id NOT NULL,
  subscription_id id NOT NULL,
  first_sequence bigint NOT NULL,
  last_sequence bigint NOT NULL,
  first_event bigint NOT NULL,
  last_event bigint NOT NULL,
  -- The epoch in which the numbers of the run were given; jumped_from: of its first run, the last number before the
  -- jump.
  epoch integer DEFAULT pass_gate() NOT NULL,
  jumped_from bigint,
  CONSTRAINT sequence_runs_pkey PRIMARY KEY (schema_id, subscription_id, first_sequence),
  CONSTRAINT sequence_runs_subscription_id_first_sequence_key UNIQUE (subscription_id, first_sequence),
  CONSTRAINT sequence_runs_check CHECK ((last_sequence - first_sequence) >= 0 AND (last_sequence - first_sequence) <= 999),
  CONSTRAINT sequence_runs_check1 CHECK ((last_event - first_event) >= (last_sequence - first_sequence)),
  CONSTRAINT sequence_runs_check2 CHECK (jumped_from < first_sequence),
  CONSTRAINT sequence_runs_first_sequence_check CHECK (first_sequence > 0)
);
ALTER TABLE sequence_runs ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON sequence_runs TO grandlivre_service;

-- One row.
CREATE TABLE service_state (
  one boolean DEFAULT true NOT NULL,
  under_maintenance boolean DEFAULT false NOT NULL,
  -- Rises after a failover that lost commits: nothing that named a state before is honoured.
  epoch bigint DEFAULT 1 NOT NULL,
  -- Cursors are signed with it. No role but the owner reads this table.
  cursor_key bytea DEFAULT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) NOT NULL,
  rendering text DEFAULT '0'::text NOT NULL,
  -- What was logged before has been compacted.
  compacted_until timestamp with time zone,
  CONSTRAINT service_state_pkey PRIMARY KEY (one),
  CONSTRAINT service_state_one_check CHECK (one)
);
CREATE TRIGGER adopt_epoch AFTER UPDATE OF epoch ON service_state FOR EACH ROW EXECUTE FUNCTION adopt_epoch();

-- Secrets with which the deliveries of a subscription are signed beside that of its third party
-- (docs/spec/webhooks.md#signing-secrets). A subscription of 0.2.0 has none until its next delivery.
CREATE TABLE signing_secrets (
  subscription_id id NOT NULL,
  -- AES-256-GCM under MASTER_KEY.
  secret_encrypted bytea NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  -- Null: the newest; otherwise when it no longer signs.
  retired_at timestamp with time zone,
  CONSTRAINT signing_secrets_pkey PRIMARY KEY (subscription_id, created_at)
);
CREATE UNIQUE INDEX signing_secrets_newest ON signing_secrets USING btree (subscription_id) WHERE retired_at IS NULL;
ALTER TABLE signing_secrets ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON signing_secrets TO grandlivre_service;

-- Filled by first-rows.sql, which says why it is a table.
CREATE TABLE sources (
  code text NOT NULL,
  CONSTRAINT sources_pkey PRIMARY KEY (code)
);

-- The id of the last event that was put into a delivery, or passed over because it does not match the subscription.
CREATE TABLE subscription_positions (
  schema_id id NOT NULL,
  subscription_id id NOT NULL,
  position bigint NOT NULL,
  CONSTRAINT subscription_positions_pkey PRIMARY KEY (schema_id, subscription_id)
);
CREATE INDEX subscription_positions_of_subscription ON subscription_positions USING btree (subscription_id);
ALTER TABLE subscription_positions ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON subscription_positions TO grandlivre_service;

-- A subscription has a position in the events of each schema; a delivery is a batch of up to 100 consecutive events
-- after it.
CREATE TABLE subscriptions (
  -- Alone the key, without schema_id: a subscription for all schemas has none.
  id id NOT NULL,
  -- Null: all schemas.
  schema_id id,
  -- Who made it, and so who may see it.
  level text NOT NULL,
  -- Of the token that made it.
  firm_id id,
  third_party_id id NOT NULL,
  -- Null: nothing is posted, its events are read.
  post_url text,
  on_events text[] NOT NULL,
  -- Empty: the whole schema.
  folder_ids bigint[] DEFAULT '{}'::bigint[] NOT NULL,
  -- Where it begins in every schema without a row in subscription_positions (latest_event).
  start_position bigint NOT NULL,
  enabled boolean DEFAULT true NOT NULL,
  disabled_at timestamp with time zone,
  disabled_reason text,
  -- The first failure since the last success; null: none.
  failing_since timestamp with time zone,
  last_success_at timestamp with time zone,
  created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
  -- When its owner last asked for a ping.
  pinged_at timestamp with time zone,
  -- The last number given.
  numbered bigint DEFAULT 0 NOT NULL,
  -- The last number that was put into a delivery, or skipped.
  collected bigint DEFAULT 0 NOT NULL,
  -- When a retry was planned that was sent ahead, or for which a receiver asked.
  woken_at timestamp with time zone,
  epoch integer DEFAULT pass_gate() NOT NULL,
  CONSTRAINT subscriptions_pkey PRIMARY KEY (id),
  CONSTRAINT subscriptions_check CHECK ((level = 'staff'::text) = (firm_id IS NULL)),
  CONSTRAINT subscriptions_check1 CHECK (level <> 'api'::text OR cardinality(folder_ids) = 1),
  CONSTRAINT subscriptions_check2 CHECK (schema_id IS NOT NULL OR level = 'staff'::text AND folder_ids = '{}'::bigint[]),
  CONSTRAINT subscriptions_check3 CHECK (enabled = (disabled_at IS NULL) AND enabled = (disabled_reason IS NULL)),
  CONSTRAINT subscriptions_collected_check CHECK (collected >= 0 AND collected <= numbered),
  CONSTRAINT subscriptions_level_check CHECK (level = ANY (ARRAY['api'::text, 'firm'::text, 'staff'::text])),
  CONSTRAINT subscriptions_on_events_check CHECK (cardinality(on_events) >= 1 AND cardinality(on_events) <= 50),
  CONSTRAINT subscriptions_post_url_check CHECK (length(post_url) >= 1 AND length(post_url) <= 2048)
);
CREATE INDEX subscriptions_of_schema ON subscriptions USING btree (schema_id, third_party_id);
CREATE INDEX subscriptions_of_third_party ON subscriptions USING btree (third_party_id);
ALTER TABLE subscriptions ENABLE ROW LEVEL SECURITY;
GRANT DELETE, INSERT, SELECT, UPDATE ON subscriptions TO grandlivre_service;

-- The version that last changed another table of a ledger than entries and movements; no row: none since this migration.
-- Not in `folders`, since a new column would hold up every request until the end of the migration.
CREATE TABLE table_changes (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  version bigint NOT NULL,
  CONSTRAINT table_changes_pkey PRIMARY KEY (schema_id, folder_id)
);
ALTER TABLE table_changes ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON table_changes TO grandlivre_service;

CREATE TABLE third_parties (
  id id NOT NULL,
  code text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  disconnected_at timestamp(0) with time zone,
  disconnected_reason text,
  created_at timestamp(0) with time zone DEFAULT now() NOT NULL,
  CONSTRAINT third_parties_pkey PRIMARY KEY (id),
  CONSTRAINT third_parties_code_key UNIQUE (code),
  CONSTRAINT third_parties_check CHECK ((disconnected_at IS NULL) = (disconnected_reason IS NULL)),
  CONSTRAINT third_parties_code_check CHECK (code ~ '^[A-Z0-9][A-Z0-9_-]{0,31}$'::text),
  CONSTRAINT third_parties_kind_check CHECK (kind = ANY (ARRAY['partner'::text, 'customer'::text]))
);
CREATE TRIGGER ledger_version AFTER UPDATE ON third_parties REFERENCING OLD TABLE AS former NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_versions_of_third_parties();
GRANT SELECT (code) ON third_parties TO grandlivre_service;
GRANT SELECT (disconnected_at) ON third_parties TO grandlivre_service;
GRANT SELECT (id) ON third_parties TO grandlivre_service;
GRANT SELECT (kind) ON third_parties TO grandlivre_service;
GRANT SELECT (name) ON third_parties TO grandlivre_service;

-- The newest secret of a third party signs. Those that it has replaced are accepted in calls until they are retired.
CREATE TABLE third_party_secrets (
  third_party_id id NOT NULL,
  secret_hash bytea NOT NULL,
  -- AES-256-GCM under MASTER_KEY: webhooks are signed with the secret itself.
  secret_encrypted bytea NOT NULL,
  created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
  -- Null: the newest; otherwise when it is refused.
  retired_at timestamp with time zone,
  CONSTRAINT third_party_secrets_pkey PRIMARY KEY (secret_hash),
  CONSTRAINT third_party_secrets_secret_hash_check CHECK (length(secret_hash) = 32)
);
CREATE UNIQUE INDEX third_party_secrets_newest ON third_party_secrets USING btree (third_party_id) WHERE retired_at IS NULL;
ALTER TABLE third_party_secrets ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON third_party_secrets TO grandlivre_service;

CREATE TABLE tokens (
  schema_id id NOT NULL,
  id id NOT NULL,
  third_party_id id NOT NULL,
  level text NOT NULL,
  firm_id id NOT NULL,
  folder_id id,
  token_hash bytea NOT NULL,
  -- The token's last four characters, so that staff can tell tokens apart in a list.
  hint text NOT NULL,
  created_at timestamp(0) with time zone DEFAULT now() NOT NULL,
  activated_at timestamp(0) with time zone,
  revoked_at timestamp(0) with time zone,
  -- Null: all groups.
  groups text[],
  expires_at timestamp with time zone DEFAULT 'infinity'::timestamp with time zone NOT NULL,
  CONSTRAINT tokens_pkey PRIMARY KEY (schema_id, id),
  CONSTRAINT tokens_token_hash_key UNIQUE (token_hash),
  CONSTRAINT tokens_check CHECK ((level = 'api'::text) = (folder_id IS NOT NULL)),
  CONSTRAINT tokens_groups_check CHECK (groups <@ '{movements,exports,webhooks,resources,employees}'::text[] AND groups <> '{}'::text[]),
  CONSTRAINT tokens_level_check CHECK (level = ANY (ARRAY['api'::text, 'firm'::text])),
  CONSTRAINT tokens_token_hash_check CHECK (length(token_hash) = 32)
);
CREATE INDEX tokens_in_use ON tokens USING btree (third_party_id, folder_id, firm_id) WHERE revoked_at IS NULL;
CREATE INDEX tokens_of_firm ON tokens USING btree (schema_id, firm_id, folder_id) WHERE revoked_at IS NULL;
-- What the console lists of all tenants: the tokens of one third party, and (tokens_of_firm) the readers of a folder.
CREATE INDEX tokens_of_third_party ON tokens USING btree (third_party_id, id);
CREATE TRIGGER publish_activation AFTER UPDATE OF activated_at ON tokens FOR EACH ROW WHEN (old.activated_at IS NULL AND new.activated_at IS NOT NULL) EXECUTE FUNCTION publish_activation();
CREATE TRIGGER resume_subscriptions AFTER INSERT ON tokens FOR EACH ROW EXECUTE FUNCTION resume_subscriptions();
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON tokens TO grandlivre_service;

CREATE TABLE vat_codes (
  schema_id id NOT NULL,
  folder_id id NOT NULL,
  id id NOT NULL,
  code text NOT NULL,
  -- Hundredths of a percent: 2000 is 20 %.
  rate integer NOT NULL,
  CONSTRAINT vat_codes_pkey PRIMARY KEY (schema_id, folder_id, id),
  CONSTRAINT vat_codes_schema_id_folder_id_code_key UNIQUE (schema_id, folder_id, code),
  CONSTRAINT vat_codes_rate_check CHECK (rate >= 0 AND rate <= 10000)
);
CREATE TRIGGER ledger_version_delete AFTER DELETE ON vat_codes REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_insert AFTER INSERT ON vat_codes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER ledger_version_update AFTER UPDATE ON vat_codes REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION advance_ledger_version();
CREATE TRIGGER refuse_move BEFORE UPDATE OF schema_id, folder_id ON vat_codes FOR EACH ROW WHEN (old.schema_id::bigint IS DISTINCT FROM new.schema_id::bigint OR old.folder_id::bigint IS DISTINCT FROM new.folder_id::bigint) EXECUTE FUNCTION refuse_unversioned_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON vat_codes FOR EACH STATEMENT EXECUTE FUNCTION refuse_unversioned_change();
ALTER TABLE vat_codes ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON vat_codes TO grandlivre_service;

ALTER TABLE accounts ADD CONSTRAINT accounts_schema_id_folder_id_correspondance_account_id_fkey FOREIGN KEY (schema_id, folder_id, correspondance_account_id) REFERENCES accounts(schema_id, folder_id, id);
ALTER TABLE accounts ADD CONSTRAINT accounts_schema_id_folder_id_counterpart_account_id_fkey FOREIGN KEY (schema_id, folder_id, counterpart_account_id) REFERENCES accounts(schema_id, folder_id, id);
ALTER TABLE accounts ADD CONSTRAINT accounts_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
CREATE POLICY tenant ON accounts FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE axes ADD CONSTRAINT axes_schema_id_folder_id_default_section_id_fkey FOREIGN KEY (schema_id, folder_id, default_section_id) REFERENCES sections(schema_id, folder_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE axes ADD CONSTRAINT axes_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
CREATE POLICY tenant ON axes FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE banks ADD CONSTRAINT banks_schema_id_folder_id_account_id_fkey FOREIGN KEY (schema_id, folder_id, account_id) REFERENCES accounts(schema_id, folder_id, id);
ALTER TABLE banks ADD CONSTRAINT banks_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
ALTER TABLE banks ADD CONSTRAINT banks_schema_id_folder_id_journal_id_fkey FOREIGN KEY (schema_id, folder_id, journal_id) REFERENCES journals(schema_id, folder_id, id);
CREATE POLICY tenant ON banks FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE companies ADD CONSTRAINT companies_schema_id_folder_id_account_id_fkey FOREIGN KEY (schema_id, folder_id, account_id) REFERENCES accounts(schema_id, folder_id, id) ON DELETE CASCADE;
ALTER TABLE companies ADD CONSTRAINT companies_schema_id_folder_id_payment_id_fkey FOREIGN KEY (schema_id, folder_id, payment_id) REFERENCES payments(schema_id, folder_id, id);
ALTER TABLE companies ADD CONSTRAINT companies_schema_id_folder_id_vat_id_fkey FOREIGN KEY (schema_id, folder_id, vat_id) REFERENCES vat_codes(schema_id, folder_id, id);
CREATE POLICY tenant ON companies FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE console_sessions ADD CONSTRAINT console_sessions_key_id_fkey FOREIGN KEY (key_id) REFERENCES console_keys(id);

ALTER TABLE deliveries ADD CONSTRAINT deliveries_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES subscriptions(id) ON DELETE CASCADE;
CREATE POLICY delivering ON deliveries FOR ALL TO PUBLIC USING (delivering());
CREATE POLICY tenant ON deliveries FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE delivery_attempts ADD CONSTRAINT delivery_attempts_schema_id_delivery_id_fkey FOREIGN KEY (schema_id, delivery_id) REFERENCES deliveries(schema_id, id) ON DELETE CASCADE;
CREATE POLICY delivering ON delivery_attempts FOR ALL TO PUBLIC USING (delivering());
CREATE POLICY tenant ON delivery_attempts FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE employees ADD CONSTRAINT employees_schema_id_folder_id_account_id_fkey FOREIGN KEY (schema_id, folder_id, account_id) REFERENCES accounts(schema_id, folder_id, id) ON DELETE CASCADE;
ALTER TABLE employees ADD CONSTRAINT employees_schema_id_folder_id_doubtful_account_id_fkey FOREIGN KEY (schema_id, folder_id, doubtful_account_id) REFERENCES accounts(schema_id, folder_id, id);
ALTER TABLE employees ADD CONSTRAINT employees_schema_id_folder_id_payment_id_fkey FOREIGN KEY (schema_id, folder_id, payment_id) REFERENCES payments(schema_id, folder_id, id);
CREATE POLICY tenant ON employees FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE entries ADD CONSTRAINT entries_schema_id_folder_id_exercice_id_fkey FOREIGN KEY (schema_id, folder_id, exercice_id) REFERENCES exercices(schema_id, folder_id, id);
ALTER TABLE entries ADD CONSTRAINT entries_schema_id_folder_id_journal_id_fkey FOREIGN KEY (schema_id, folder_id, journal_id) REFERENCES journals(schema_id, folder_id, id);
ALTER TABLE entries ADD CONSTRAINT entries_source_fkey FOREIGN KEY (source) REFERENCES sources(code);
ALTER TABLE entries ADD CONSTRAINT entries_third_party_id_fkey FOREIGN KEY (third_party_id) REFERENCES third_parties(id);
CREATE POLICY tenant ON entries FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE entry_numbers ADD CONSTRAINT entry_numbers_schema_id_folder_id_exercice_id_fkey FOREIGN KEY (schema_id, folder_id, exercice_id) REFERENCES exercices(schema_id, folder_id, id) ON DELETE CASCADE;
ALTER TABLE entry_numbers ADD CONSTRAINT entry_numbers_schema_id_folder_id_journal_id_fkey FOREIGN KEY (schema_id, folder_id, journal_id) REFERENCES journals(schema_id, folder_id, id) ON DELETE CASCADE;
CREATE POLICY tenant ON entry_numbers FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

CREATE POLICY delivering ON events FOR ALL TO PUBLIC USING (delivering());
CREATE POLICY tenant ON events FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE exercices ADD CONSTRAINT exercices_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
CREATE POLICY tenant ON exercices FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE exports ADD CONSTRAINT exports_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
CREATE POLICY tenant ON exports FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE firms ADD CONSTRAINT firms_schema_id_fkey FOREIGN KEY (schema_id) REFERENCES schemas(schema_id);
CREATE POLICY tenant ON firms FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE folders ADD CONSTRAINT folders_schema_id_firm_id_fkey FOREIGN KEY (schema_id, firm_id) REFERENCES firms(schema_id, id);
CREATE POLICY tenant ON folders FOR ALL TO PUBLIC USING (schema_id::bigint = tenant() AND erased_at IS NULL);

ALTER TABLE former_filters ADD CONSTRAINT former_filters_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES subscriptions(id) ON DELETE CASCADE;
CREATE POLICY delivering ON former_filters FOR ALL TO PUBLIC USING (delivering());
CREATE POLICY tenant ON former_filters FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE journals ADD CONSTRAINT journals_schema_id_folder_id_counterpart_account_id_fkey FOREIGN KEY (schema_id, folder_id, counterpart_account_id) REFERENCES accounts(schema_id, folder_id, id);
ALTER TABLE journals ADD CONSTRAINT journals_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
CREATE POLICY tenant ON journals FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE ledger_blocks ADD CONSTRAINT ledger_blocks_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id) ON DELETE CASCADE;
CREATE POLICY tenant ON ledger_blocks FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE ledger_changes ADD CONSTRAINT ledger_changes_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id) ON DELETE CASCADE;
CREATE POLICY tenant ON ledger_changes FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE movement_blocks ADD CONSTRAINT movement_blocks_schema_id_folder_id_exercice_id_fkey FOREIGN KEY (schema_id, folder_id, exercice_id) REFERENCES exercices(schema_id, folder_id, id) ON DELETE CASCADE;
CREATE POLICY tenant ON movement_blocks FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE movements ADD CONSTRAINT movements_schema_id_folder_id_account_id_fkey FOREIGN KEY (schema_id, folder_id, account_id) REFERENCES accounts(schema_id, folder_id, id);
ALTER TABLE movements ADD CONSTRAINT movements_schema_id_folder_id_exercice_id_entry_id_fkey FOREIGN KEY (schema_id, folder_id, exercice_id, entry_id) REFERENCES entries(schema_id, folder_id, exercice_id, id) ON DELETE CASCADE;
ALTER TABLE movements ADD CONSTRAINT movements_schema_id_folder_id_payment_id_fkey FOREIGN KEY (schema_id, folder_id, payment_id) REFERENCES payments(schema_id, folder_id, id);
CREATE POLICY tenant ON movements FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE partner_limits ADD CONSTRAINT partner_limits_third_party_id_fkey FOREIGN KEY (third_party_id) REFERENCES third_parties(id) ON DELETE CASCADE;

ALTER TABLE payments ADD CONSTRAINT payments_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
CREATE POLICY tenant ON payments FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

CREATE POLICY tenant ON rate_windows FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

CREATE POLICY delivering ON schemas FOR SELECT TO PUBLIC USING (delivering());
CREATE POLICY tenant ON schemas FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE sections ADD CONSTRAINT sections_schema_id_folder_id_axis_id_fkey FOREIGN KEY (schema_id, folder_id, axis_id) REFERENCES axes(schema_id, folder_id, id);
CREATE POLICY tenant ON sections FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE sequence_runs ADD CONSTRAINT sequence_runs_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES subscriptions(id) ON DELETE CASCADE;
CREATE POLICY delivering ON sequence_runs FOR ALL TO PUBLIC USING (delivering());
CREATE POLICY tenant ON sequence_runs FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE signing_secrets ADD CONSTRAINT signing_secrets_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES subscriptions(id) ON DELETE CASCADE;
CREATE POLICY of_subscription ON signing_secrets FOR ALL TO PUBLIC USING ((EXISTS ( SELECT
   FROM subscriptions s
  WHERE s.id::bigint = signing_secrets.subscription_id::bigint)));

ALTER TABLE subscription_positions ADD CONSTRAINT subscription_positions_subscription_id_fkey FOREIGN KEY (subscription_id) REFERENCES subscriptions(id) ON DELETE CASCADE;
CREATE POLICY delivering ON subscription_positions FOR ALL TO PUBLIC USING (delivering());
CREATE POLICY tenant ON subscription_positions FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE subscriptions ADD CONSTRAINT subscriptions_schema_id_firm_id_fkey FOREIGN KEY (schema_id, firm_id) REFERENCES firms(schema_id, id);
ALTER TABLE subscriptions ADD CONSTRAINT subscriptions_schema_id_fkey FOREIGN KEY (schema_id) REFERENCES schemas(schema_id);
ALTER TABLE subscriptions ADD CONSTRAINT subscriptions_third_party_id_fkey FOREIGN KEY (third_party_id) REFERENCES third_parties(id);
CREATE POLICY delivering ON subscriptions FOR ALL TO PUBLIC USING (delivering());
CREATE POLICY tenant ON subscriptions FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE table_changes ADD CONSTRAINT table_changes_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id) ON DELETE CASCADE;
CREATE POLICY tenant ON table_changes FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE third_party_secrets ADD CONSTRAINT third_party_secrets_third_party_id_fkey FOREIGN KEY (third_party_id) REFERENCES third_parties(id);
CREATE POLICY delivering ON third_party_secrets FOR SELECT TO PUBLIC USING (delivering());

ALTER TABLE tokens ADD CONSTRAINT tokens_schema_id_firm_id_fkey FOREIGN KEY (schema_id, firm_id) REFERENCES firms(schema_id, id);
ALTER TABLE tokens ADD CONSTRAINT tokens_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
ALTER TABLE tokens ADD CONSTRAINT tokens_third_party_id_fkey FOREIGN KEY (third_party_id) REFERENCES third_parties(id);
CREATE POLICY delivering ON tokens FOR SELECT TO PUBLIC USING (delivering());
CREATE POLICY tenant ON tokens FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

ALTER TABLE vat_codes ADD CONSTRAINT vat_codes_schema_id_folder_id_fkey FOREIGN KEY (schema_id, folder_id) REFERENCES folders(schema_id, id);
CREATE POLICY tenant ON vat_codes FOR ALL TO PUBLIC USING (schema_id::bigint = tenant());

CREATE OR REPLACE FUNCTION grandlivre.caller_facts(secret_hash bytea, token_hash bytea)
 RETURNS TABLE(third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean, token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, groups text[], activated boolean)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 SELECT p.id,
     p.kind,
     p.disconnected_reason,
     s.under_maintenance,
     t.id,
     t.schema_id,
     t.level,
     t.firm_id,
     t.folder_id,
     t.groups,
     (t.activated_at IS NOT NULL)
    FROM (((third_party_secrets k
      JOIN third_parties p ON (((p.id)::bigint = (k.third_party_id)::bigint)))
      CROSS JOIN service_state s)
      LEFT JOIN tokens t ON (((t.token_hash = caller_facts.token_hash) AND ((t.third_party_id)::bigint = (p.id)::bigint) AND (t.revoked_at IS NULL) AND (t.expires_at > now()))))
   WHERE ((k.secret_hash = caller_facts.secret_hash) AND ((k.retired_at IS NULL) OR (k.retired_at > now())));
END
;
REVOKE ALL ON FUNCTION caller_facts(bytea,bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION caller_facts(bytea,bytea) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.admit(secret_hash bytea, token_hash bytea, window_ms integer)
 RETURNS TABLE(third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean, token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, groups text[], requests integer, window_started_at timestamp with time zone)
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 WITH known AS MATERIALIZED (
          SELECT c.third_party_id,
             c.kind,
             c.disconnected_reason,
             c.under_maintenance,
             c.token_id,
             c.schema_id,
             c.level,
             c.firm_id,
             c.folder_id,
             c.groups,
             c.activated,
                 CASE
                     WHEN ((c.token_id IS NOT NULL) AND (NOT c.activated) AND (c.disconnected_reason IS NULL)) THEN activate(c.schema_id, c.token_id)
                     ELSE NULL::boolean
                 END AS activated_now,
             ((COALESCE(p.window_ms, admit.window_ms))::double precision * '00:00:00.001'::interval) AS length
            FROM (caller_facts(admit.secret_hash, admit.token_hash) c(third_party_id, kind, disconnected_reason, under_maintenance, token_id, schema_id, level, firm_id, folder_id, groups, activated)
              LEFT JOIN partner_limits p ON (((p.third_party_id)::bigint = c.third_party_id)))
         ), counted AS (
          INSERT INTO rate_windows AS w (schema_id, token_id, started_at, requests)  SELECT k_1.schema_id,
                     k_1.token_id,
                     now() AS now,
                     1
                    FROM known k_1
                   WHERE (k_1.token_id IS NOT NULL) ON CONFLICT(schema_id, token_id) DO UPDATE SET started_at =
                 CASE
                     WHEN ((w.started_at + ( SELECT known.length
                        FROM known)) <= now()) THEN now()
                     ELSE w.started_at
                 END, requests =
                 CASE
                     WHEN ((w.started_at + ( SELECT known.length
                        FROM known)) <= now()) THEN 1
                     ELSE (w.requests + 1)
                 END
           RETURNING w.requests,
             w.started_at
         )
  SELECT k.third_party_id,
     k.kind,
     k.disconnected_reason,
     k.under_maintenance,
     k.token_id,
     k.schema_id,
     k.level,
     k.firm_id,
     k.folder_id,
     k.groups,
     n.requests,
     n.started_at
    FROM (known k
      LEFT JOIN counted n ON (true));
END
;
REVOKE ALL ON FUNCTION admit(bytea,bytea,integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION admit(bytea,bytea,integer) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.adopt_master_key(of_key bytea)
 RETURNS bytea
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 INSERT INTO adopted_key (fingerprint)
   VALUES (adopt_master_key.of_key) ON CONFLICT DO NOTHING;
 SELECT adopted_key.fingerprint
    FROM adopted_key;
END
;
REVOKE ALL ON FUNCTION adopt_master_key(bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION adopt_master_key(bytea) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.adopt_rendering(of_process text)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 UPDATE service_state SET rendering = adopt_rendering.of_process
   WHERE (service_state.rendering <> adopt_rendering.of_process);
END
;
REVOKE ALL ON FUNCTION adopt_rendering(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION adopt_rendering(text) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.audit_hash(previous bytea, of_row audit_rows)
 RETURNS bytea
 LANGUAGE sql
 STABLE
RETURN sha256(convert_to((array_to_json(ARRAY[encode(previous, 'hex'::text), ((of_row).number)::text, (EXTRACT(epoch FROM (of_row).at))::text, ((of_row).third_party_id)::text, ((of_row).token_id)::text, (of_row).staff, (of_row).act, ((of_row).schema_id)::text, ((of_row).folder_id)::text, (of_row).request_id, (of_row).details, ((of_row).rows)::text, ((of_row).bytes)::text, (of_row).sha256, (of_row).cursor, (of_row).outcome, (of_row).code]))::text, 'UTF8'::name))
;
REVOKE ALL ON FUNCTION audit_hash(bytea,audit_rows) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.caller(secret_hash bytea, token_hash bytea)
 RETURNS TABLE(third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean, token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, activated boolean)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 SELECT c.third_party_id,
     c.kind,
     c.disconnected_reason,
     c.under_maintenance,
         CASE
             WHEN (c.groups IS NULL) THEN c.token_id
             ELSE NULL::bigint
         END AS "case",
     c.schema_id,
     c.level,
     c.firm_id,
     c.folder_id,
     c.activated
    FROM caller_facts(caller.secret_hash, caller.token_hash) c(third_party_id, kind, disconnected_reason, under_maintenance, token_id, schema_id, level, firm_id, folder_id, groups, activated);
END
;
REVOKE ALL ON FUNCTION caller(bytea,bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION caller(bytea,bytea) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.enter(secret_hash bytea, token_hash bytea, window_ms integer)
 RETURNS TABLE(third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean, token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, requests integer, window_started_at timestamp with time zone)
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 SELECT c.third_party_id,
     c.kind,
     c.disconnected_reason,
     c.under_maintenance,
         CASE
             WHEN (c.groups IS NULL) THEN c.token_id
             ELSE NULL::bigint
         END AS "case",
     c.schema_id,
     c.level,
     c.firm_id,
     c.folder_id,
     c.requests,
     c.window_started_at
    FROM admit(enter.secret_hash, enter.token_hash, enter.window_ms) c(third_party_id, kind, disconnected_reason, under_maintenance, token_id, schema_id, level, firm_id, folder_id, groups, requests, window_started_at);
END
;
REVOKE ALL ON FUNCTION enter(bytea,bytea,integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION enter(bytea,bytea,integer) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.entries_between(of_schema bigint, of_folder bigint, first_id bigint, last_id bigint, at_most bigint)
 RETURNS bigint
 LANGUAGE sql
 STABLE
 SET search_path TO 'grandlivre', 'pg_temp'
 SET enable_sort TO 'off'
RETURN (SELECT count(*) AS count FROM (SELECT FROM entries e WHERE (((e.schema_id)::bigint = entries_between.of_schema) AND ((e.folder_id)::bigint = entries_between.of_folder) AND (((e.id)::bigint >= entries_between.first_id) AND ((e.id)::bigint <= entries_between.last_id))) ORDER BY e.id LIMIT entries_between.at_most) found)
;
REVOKE ALL ON FUNCTION entries_between(bigint,bigint,bigint,bigint,bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.entries_named(of_folder bigint, name text, drafts boolean, at_most integer)
 RETURNS TABLE(id bigint, exercice_id bigint)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 WITH by_id AS MATERIALIZED (
          SELECT e.id,
             e.exercice_id
            FROM entries e
           WHERE (((e.schema_id)::bigint = tenant()) AND ((e.folder_id)::bigint = entries_named.of_folder) AND ((e.id)::bigint =
                 CASE
                     WHEN (entries_named.name ~ '^[1-9][0-9]{0,15}$'::text) THEN (entries_named.name)::bigint
                     ELSE NULL::bigint
                 END) AND ((e.validated_at IS NULL) OR (NOT entries_named.drafts)))
         ), by_invoice AS MATERIALIZED (
          SELECT e.id,
             e.exercice_id
            FROM entries e
           WHERE (((e.schema_id)::bigint = tenant()) AND ((e.folder_id)::bigint = entries_named.of_folder) AND ((e.id)::bigint IN ( SELECT m.entry_id
                    FROM movements m
                   WHERE (((m.schema_id)::bigint = tenant()) AND ((m.folder_id)::bigint = entries_named.of_folder) AND (m.invoice_number = entries_named.name) AND (m.invoice_number <> ''::text) AND (hashtext("left"(m.invoice_number, '-1'::integer)) = hashtext("left"(entries_named.name, '-1'::integer)))))) AND ((e.validated_at IS NULL) = entries_named.drafts) AND (NOT (EXISTS ( SELECT
                    FROM by_id))))
           ORDER BY e.id
          LIMIT entries_named.at_most
         ), by_partner_id AS MATERIALIZED (
          SELECT e.id,
             e.exercice_id
            FROM entries e
           WHERE (((e.schema_id)::bigint = tenant()) AND ((e.folder_id)::bigint = entries_named.of_folder) AND ((e.partner_metadata ->> 'partnerId'::text) = entries_named.name) AND (length((e.partner_metadata ->> 'partnerId'::text)) <= 255) AND ((e.validated_at IS NULL) = entries_named.drafts) AND (NOT (EXISTS ( SELECT
                    FROM by_id))) AND (NOT (EXISTS ( SELECT
                    FROM by_invoice))))
           ORDER BY e.id
          LIMIT entries_named.at_most
         )
  SELECT n.id,
     n.exercice_id
    FROM by_id n
 UNION ALL
  SELECT n.id,
     n.exercice_id
    FROM by_invoice n
 UNION ALL
  SELECT n.id,
     n.exercice_id
    FROM by_partner_id n;
END
;
REVOKE ALL ON FUNCTION entries_named(bigint,text,boolean,integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION entries_named(bigint,text,boolean,integer) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.erased_folders()
 RETURNS bigint[]
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
RETURN (SELECT COALESCE(array_agg(f.id), '{}'::id[]) AS "coalesce" FROM folders f WHERE (f.erased_at IS NOT NULL))
;
REVOKE ALL ON FUNCTION erased_folders() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erased_folders() TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.event_scope(of_schema bigint, of_firm bigint, of_folder bigint)
 RETURNS json
 LANGUAGE sql
 STABLE
RETURN (SELECT json_strip_nulls(json_build_object('schemaId', event_scope.of_schema, 'firmId', firm.id, 'firmSIRET', firm.siret, 'accountingFolderId', folder.id, 'accountingFolderRef', folder.reference, 'accountingFolderSIRET', folder.siret)) AS json_strip_nulls FROM (((SELECT event_scope.of_schema AS schema_id) named LEFT JOIN folders folder ON ((((folder.schema_id)::bigint = named.schema_id) AND ((folder.id)::bigint = event_scope.of_folder)))) LEFT JOIN firms firm ON ((((firm.schema_id)::bigint = named.schema_id) AND ((firm.id)::bigint = COALESCE(event_scope.of_firm, (folder.firm_id)::bigint))))))
;

CREATE OR REPLACE FUNCTION grandlivre.expired_audit(months integer, at_most integer)
 RETURNS TABLE(count bigint, hash bytea)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 WITH oldest AS MATERIALIZED (
          SELECT r.number,
             r.at,
             r.hash
            FROM audit_rows r
           ORDER BY r.number
          LIMIT expired_audit.at_most
         ), kept AS (
          SELECT min(o_1.number) AS number
            FROM oldest o_1
           WHERE (o_1.at >= (now() - make_interval(months => GREATEST(expired_audit.months, 1))))
         )
  SELECT o.number,
     o.hash
    FROM oldest o,
     kept k
   WHERE ((k.number IS NULL) OR (o.number < k.number))
   ORDER BY o.number DESC
  LIMIT 1;
END
;
REVOKE ALL ON FUNCTION expired_audit(integer,integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION expired_audit(integer,integer) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.this_server()
 RETURNS bigint
 LANGUAGE sql
RETURN (hashtextextended(concat_ws('/'::text, current_setting('grandlivre.system_identifier'::text, true), "left"(pg_walfile_name(pg_current_wal_lsn()), 8), (('service_state'::regclass)::oid)::text), (0)::bigint) & '4503599627370495'::bigint)
;
REVOKE ALL ON FUNCTION this_server() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.is_other_server()
 RETURNS boolean
 LANGUAGE sql
RETURN (pg_sequence_last_value('server_name'::regclass) IS DISTINCT FROM this_server())
;
REVOKE ALL ON FUNCTION is_other_server() FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.latest_event(of_schema bigint)
 RETURNS bigint
 LANGUAGE sql
RETURN CASE WHEN (of_schema IS NULL) THEN COALESCE(pg_sequence_last_value('event_ids'::regclass), (0)::bigint) ELSE COALESCE((SELECT max(e.id) AS max FROM events e WHERE ((e.schema_id)::bigint = latest_event.of_schema)), (0)::bigint) END
;

CREATE OR REPLACE FUNCTION grandlivre.ledger_cursors(of_schema bigint, of_folders bigint[], versions bigint[], of_rendering text)
 RETURNS TABLE(folder_id bigint, cursor text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 SELECT l.folder_id,
     (((((((l.version)::text || '.'::text) || (e.epoch)::text) || '.'::text) || ledger_cursors.of_rendering) || '.'::text) || cursor_code(s.cursor_key, ledger_cursors.of_schema, l.folder_id, l.version, e.epoch, ledger_cursors.of_rendering))
    FROM service_state s,
     pg_sequence_last_value('epoch'::regclass) e(epoch),
     UNNEST(ledger_cursors.of_folders, ledger_cursors.versions) l(folder_id, version);
END
;
REVOKE ALL ON FUNCTION ledger_cursors(bigint,bigint[],bigint[],text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledger_cursors(bigint,bigint[],bigint[],text) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.ledger_cursor(of_schema bigint, of_folder bigint, version bigint, of_rendering text)
 RETURNS text
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
RETURN (SELECT c.cursor FROM ledger_cursors(ledger_cursor.of_schema, ARRAY[ledger_cursor.of_folder], ARRAY[ledger_cursor.version], ledger_cursor.of_rendering) c(folder_id, cursor))
;
REVOKE ALL ON FUNCTION ledger_cursor(bigint,bigint,bigint,text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ledger_cursor(bigint,bigint,bigint,text) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.master_key_standing()
 RETURNS TABLE(fingerprint bytea, next_fingerprint bytea, newest_secret bytea)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 SELECT a.fingerprint,
     ( SELECT n.fingerprint
            FROM next_key n) AS fingerprint,
         CASE
             WHEN (a.fingerprint IS NULL) THEN ( SELECT k.secret_encrypted
                FROM ( SELECT third_party_secrets.secret_encrypted,
                         third_party_secrets.created_at
                        FROM third_party_secrets
                     UNION ALL
                      SELECT signing_secrets.secret_encrypted,
                         signing_secrets.created_at
                        FROM signing_secrets) k
               WHERE (k.secret_encrypted <> '\x'::bytea)
               ORDER BY k.created_at DESC
              LIMIT 1)
             ELSE NULL::bytea
         END AS "case"
    FROM (( VALUES (true)) database
      LEFT JOIN adopted_key a ON (true));
END
;
REVOKE ALL ON FUNCTION master_key_standing() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION master_key_standing() TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.note_table_change(of_schema bigint, of_folder bigint, of_version bigint)
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 INSERT INTO table_changes (schema_id, folder_id, version)
   VALUES (note_table_change.of_schema, note_table_change.of_folder, note_table_change.of_version) ON CONFLICT(schema_id, folder_id) DO UPDATE SET version = excluded.version;
END
;
REVOKE ALL ON FUNCTION note_table_change(bigint,bigint,bigint) FROM PUBLIC;

CREATE OR REPLACE FUNCTION grandlivre.opens_webhooks(token tokens)
 RETURNS boolean
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (((token).revoked_at IS NULL) AND ((token).expires_at > now()) AND (((token).groups IS NULL) OR ('webhooks'::text = ANY ((token).groups))))
;

CREATE OR REPLACE FUNCTION grandlivre.read_ledger_cursor(cursor text, of_schema bigint, of_folder bigint, current_rendering text)
 RETURNS TABLE(version bigint, refusal text)
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 WITH given AS (
          SELECT (p.p[1])::bigint AS version,
             (p.p[2])::bigint AS epoch,
             p.p[3] AS rendering,
             p.p[4] AS code
            FROM regexp_match(read_ledger_cursor.cursor, '^(0|[1-9][0-9]{0,17})\.([1-9][0-9]{0,8})\.([A-Za-z0-9_-]{1,8})\.([A-Za-z0-9_-]{22})$'::text) p(p)
         )
  SELECT g.version,
         CASE
             WHEN ((g.code IS NULL) OR (sha256(convert_to(g.code, 'UTF8'::name)) <> sha256(convert_to(cursor_code(s.cursor_key, read_ledger_cursor.of_schema, read_ledger_cursor.of_folder, g.version, g.epoch, g.rendering), 'UTF8'::name)))) THEN 'unknown'::text
             WHEN (g.epoch <> pg_sequence_last_value('epoch'::regclass)) THEN 'epoch'::text
             WHEN (g.rendering <> read_ledger_cursor.current_rendering) THEN 'rendering'::text
             WHEN (g.version > f.ledger_version) THEN 'later'::text
             WHEN (EXISTS ( SELECT
                FROM ledger_changes c
               WHERE (((c.schema_id)::bigint = read_ledger_cursor.of_schema) AND ((c.folder_id)::bigint = read_ledger_cursor.of_folder) AND (c.kind = 'forgotten'::text) AND (c.version > g.version)))) THEN 'forgotten'::text
             ELSE NULL::text
         END AS "case"
    FROM ((service_state s
      JOIN folders f ON ((((f.schema_id)::bigint = read_ledger_cursor.of_schema) AND ((f.id)::bigint = read_ledger_cursor.of_folder) AND ((f.schema_id)::bigint = tenant()))))
      LEFT JOIN given g ON (true));
END
;
REVOKE ALL ON FUNCTION read_ledger_cursor(text,bigint,bigint,text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION read_ledger_cursor(text,bigint,bigint,text) TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.receives(subscription subscriptions, of_schema bigint, event_name text, of_folder bigint)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN ((subscription).enabled AND (((subscription).schema_id IS NULL) OR (((subscription).schema_id)::bigint = of_schema)) AND selects((subscription).on_events, (subscription).folder_ids, event_name, of_folder))
;

CREATE OR REPLACE FUNCTION grandlivre.tenants_with_exports()
 RETURNS SETOF bigint
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 SELECT DISTINCT (e.schema_id)::bigint AS schema_id
    FROM exports e;
END
;
REVOKE ALL ON FUNCTION tenants_with_exports() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_exports() TO grandlivre_service;

CREATE OR REPLACE FUNCTION grandlivre.uncount_request(of_schema bigint, of_token bigint, window_started_at timestamp with time zone)
 RETURNS integer
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'grandlivre', 'pg_temp'
BEGIN ATOMIC
 UPDATE rate_windows w SET requests = (w.requests - 1)
   WHERE (((w.schema_id)::bigint = uncount_request.of_schema) AND ((w.token_id)::bigint = uncount_request.of_token) AND (w.started_at = uncount_request.window_started_at))
   RETURNING w.requests;
END
;
REVOKE ALL ON FUNCTION uncount_request(bigint,bigint,timestamp with time zone) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION uncount_request(bigint,bigint,timestamp with time zone) TO grandlivre_service;

INSERT INTO migrations (version, name) VALUES
  (1, '0001_tenants_and_access.sql'),
  (2, '0002_ledger.sql'),
  (3, '0003_exports.sql'),
  (4, '0004_webhooks.sql'),
  (5, '0005_activation.sql'),
  (6, '0006_third_party_names.sql'),
  (7, '0007_functions.sql'),
  (8, '0008_filed_ledgers.sql'),
  (9, '0009_ledger_changes.sql'),
  (10, '0010_audit.expand.sql'),
  (11, '0011_console.expand.sql'),
  (12, '0012_staff_lists.expand.sql'),
  (13, '0013_master_key.expand.sql'),
  (14, '0014_first_versions.expand.sql'),
  (15, '0015_subscriptions_of_tokens.expand.sql'),
  (16, '0016_list_of_ledgers.expand.sql'),
  (17, '0017_blocks_of_ledgers.expand.sql'),
  (18, '0018_limits_of_partners.expand.sql'),
  (19, '0019_gate.expand.sql'),
  (20, '0020_tokens.expand.sql'),
  (21, '0021_erasure.expand.sql'),
  (22, '0022_rotate_key.expand.sql'),
  (23, '0023_employees.expand.sql'),
  (24, '0024_draw_several.expand.sql');
