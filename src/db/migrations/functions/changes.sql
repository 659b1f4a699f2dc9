-- The versions of a ledger, the log of its changes, and the cursors that name its states (docs/spec/changes.md).

-- Any statement that changes a row of a ledger gives the folder a new ledger version, in the same transaction. It is a
-- trigger because an ETag that misses one change would serve stale books. The row lock on the folder makes writers of
-- one folder wait for each other, so a version names exactly one committed state, and versions of a folder ascend in
-- the order of its commits.
--
-- Its arguments are the kind of a row in ledger_changes and the column with its ids. If they are given, the trigger also
-- logs what the statement touched, under that lock and with that version: a reader that sees a version sees every earlier
-- change.
create or replace function advance_ledger_version() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

-- Counts the entries with an id in this range, up to `at_most`. Only the primary key gives this order without a sort, so
-- that no plan reads the whole folder, whatever the statistics say.
create or replace function entries_between(
  of_schema bigint, of_folder bigint, first_id bigint, last_id bigint, at_most bigint) returns bigint
  language sql stable set search_path = grandlivre, pg_temp set enable_sort = off
  return (select count(*) from (
    select from entries e
    where e.schema_id = of_schema and e.folder_id = of_folder and e.id between first_id and last_id
    order by e.id limit at_most) found);

revoke all on function entries_between from public;

-- Locks the folder until the transaction ends, and gives it its next version. The lock comes first: otherwise an update that
-- waits would have drawn a lower version than the one that it waits for. Null for an erased folder, whose changes are not
-- logged.
create or replace function next_ledger_version(of_schema bigint, of_folder bigint) returns bigint
  language plpgsql set search_path = grandlivre, pg_temp
as $$
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
end $$;

revoke all on function next_ledger_version from public;

-- Notes for the end of the transaction which schemas it has changed, and its latest version. A rollback to a savepoint
-- also undoes the note.
create or replace function note_ledger_change(of_schema bigint, of_folder bigint, version bigint) returns void
  language plpgsql set search_path = grandlivre, pg_temp
as $$
declare
  schemas bigint[] := coalesce(nullif(current_setting('grandlivre.changed_schemas', true), ''), '{}')::bigint[];
begin
  if not of_schema = any (schemas) then
    perform set_config('grandlivre.changed_schemas', (schemas || of_schema)::text, true);
  end if;
  perform set_config('grandlivre.latest_change', array[of_schema, of_folder, version]::text, true);
end $$;

revoke all on function note_ledger_change from public;

-- Notes the change of a table of the ledger other than entries and movements. The caller has locked the folder.
create or replace function note_table_change(of_schema bigint, of_folder bigint, of_version bigint) returns void
  language sql volatile set search_path = grandlivre, pg_temp
  begin atomic
    insert into table_changes (schema_id, folder_id, version) values (of_schema, of_folder, of_version)
      on conflict (schema_id, folder_id) do update set version = excluded.version;
  end;

revoke all on function note_table_change from public;

-- Joins ranges so that fewer of them hold all of these ids. Up to 1,000 ranges stay as they are. More ranges are joined
-- where a single id lies between two, so they hold at most twice the ids touched; if they hold more than 100,000 ids, they
-- become blocks of 1,024 ids. So a row takes at most two megabytes (20 bytes a range), and only for 100,000 scattered entries.
create or replace function coarsened(exact int8multirange) returns int8multirange
  language sql immutable parallel safe
  return (
    select case
      when count(*) <= 1000 then exact
      when sum(upper(r) - lower(r)) > 100000 then
        range_agg(int8range(lower(r) / 1024 * 1024, ((upper(r) - 1) / 1024 + 1) * 1024))
      else (
        -- Makes each range one id longer. Ranges that then meet become one, whose last id is one too many.
        select range_agg(int8range(lower(j), upper(j) - 1))
        from (select range_agg(int8range(lower(x), upper(x) + 1)) as joined from unnest(exact) x) longer, unnest(joined) j
      ) end
    from unnest(exact) r
  );

-- Exports also contain columns of the folder itself (name, currency). Lines of movements and entries do not.
create or replace function advance_own_ledger_version() returns trigger
  language plpgsql set search_path = grandlivre, pg_temp
as $$
begin
  new.ledger_version := draw('ledger_versions');
  perform note_ledger_change(new.schema_id, new.id, new.ledger_version);
  perform note_table_change(new.schema_id, new.id, new.ledger_version);
  return new;
end $$;

-- A folder draws its first version when any program inserts it. The id may have named another folder before: cursors of
-- that folder have an earlier version and are refused, and its ETags never return. Nothing is noted for the end of the
-- transaction, because a ledger without changes publishes nothing, and `on conflict` may drop the row again.
create or replace function begin_ledger() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
begin
  if tg_when = 'BEFORE' then
    new.ledger_version := draw('ledger_versions');
    return new;
  end if;
  insert into ledger_changes (schema_id, folder_id, version, kind, ids)
    values (new.schema_id, new.id, new.ledger_version, 'forgotten', '{}');
  return null;
end $$;

revoke all on function begin_ledger from public;

-- Entries that a partner sent contain the partner's code and name, so a change of either changes all folders with such
-- entries.
create or replace function advance_ledger_versions_of_third_parties() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

-- The text that names a state of a folder's ledger: version, epoch, rendering, and a code that only this database can
-- compute. The same state has the same text wherever it is shown. At most 64 characters (19 + 10 + 8 + 22 and three
-- dots). The rendering stands for all that decides the bytes of a line besides the ledger.
create or replace function ledger_cursor(of_schema bigint, of_folder bigint, version bigint, of_rendering text)
  returns text
  language sql stable security definer set search_path = grandlivre, pg_temp
  return (select c.cursor from ledger_cursors(of_schema, array[of_folder], array[version], of_rendering) c);

revoke all on function ledger_cursor from public;
grant execute on function ledger_cursor to grandlivre_service;

-- The cursors of many ledgers of a schema: 7 ms for 3,000; as many calls of ledger_cursor take 26 ms.
create or replace function ledger_cursors(
  of_schema bigint, of_folders bigint[], versions bigint[], of_rendering text) returns table (folder_id bigint, cursor text)
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select l.folder_id, l.version::text || '.' || e.epoch::text || '.' || of_rendering || '.' ||
        cursor_code(s.cursor_key, of_schema, l.folder_id, l.version, e.epoch, of_rendering)
      from service_state s, pg_sequence_last_value('epoch') e (epoch), unnest(of_folders, versions) l (folder_id, version);
  end;

revoke all on function ledger_cursors from public;
grant execute on function ledger_cursors to grandlivre_service;

-- A code of 132 bits. The key is used twice, so that nobody can extend a text and its code. All functions here are
-- immutable, so that PostgreSQL computes the code in place: 1.3 us instead of 3.6 with format() and convert_to(). The text
-- has no backslash, so a cast gives its bytes.
create or replace function cursor_code(
  key bytea, of_schema bigint, of_folder bigint, version bigint, epoch bigint, rendering text) returns text
  language sql immutable parallel safe
  return replace(replace(left(encode(sha256(key || sha256(key || (of_schema::text || '/' || of_folder::text || '/' ||
    version::text || '/' || epoch::text || '/' || rendering)::bytea)), 'base64'), 22), '+', '-'), '/', '_');

revoke all on function cursor_code from public;

-- The version in a cursor of this folder, which must be the tenant's: no row otherwise. `refusal` is null if the changes
-- after the cursor are known, and otherwise says why they are not:
--   unknown    not a cursor of this folder
--   epoch      the cursor is from before a failover or a restore
--   rendering  lines had another form then
--   later      this database does not have the state of the cursor
--   forgotten  changes after the cursor were forgotten
-- Codes are compared by their hashes, so that the time of the comparison reveals nothing about them.
create or replace function read_ledger_cursor(cursor text, of_schema bigint, of_folder bigint, current_rendering text)
  returns table (version bigint, refusal text)
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    with given as (
      select p[1]::bigint as version, p[2]::bigint as epoch, p[3] as rendering, p[4] as code
      from regexp_match(cursor, '^(0|[1-9][0-9]{0,17})\.([1-9][0-9]{0,8})\.([A-Za-z0-9_-]{1,8})\.([A-Za-z0-9_-]{22})$') p
    )
    select g.version, case
      when g.code is null or sha256(convert_to(g.code, 'UTF8')) <> sha256(convert_to(
        cursor_code(s.cursor_key, of_schema, of_folder, g.version, g.epoch, g.rendering), 'UTF8')) then 'unknown'
      when g.epoch <> pg_sequence_last_value('epoch') then 'epoch'
      when g.rendering <> current_rendering then 'rendering'
      when g.version > f.ledger_version then 'later'
      when exists (select from ledger_changes c where c.schema_id = of_schema and c.folder_id = of_folder
        and c.kind = 'forgotten' and c.version > g.version) then 'forgotten'
      end
    from service_state s join folders f on f.schema_id = of_schema and f.id = of_folder and f.schema_id = tenant()
    left join given g on true;
  end;

revoke all on function read_ledger_cursor from public;
grant execute on function read_ledger_cursor to grandlivre_service;

-- The rendering of the newest process, for the cursors that the database writes itself.
create or replace function adopt_rendering(of_process text) returns void
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    update service_state set rendering = of_process where rendering <> of_process;
  end;

revoke all on function adopt_rendering from public;
grant execute on function adopt_rendering to grandlivre_service;

-- Locks the events of every schema in which the transaction changed a ledger, in ascending order.
create or replace function lock_events_of_changes(of_schema bigint) returns void
  language plpgsql volatile set search_path = grandlivre, pg_temp
as $$
begin
  perform lock_events(schema_id) from (
    select distinct unnest(of_schema || nullif(current_setting('grandlivre.changed_schemas', true), '')::bigint[])
      order by 1
  ) changed (schema_id);
end $$;

-- At the end of a transaction that changed a folder's ledger, publishes one event with the new cursor, and notifies requests
-- that wait for a change of the ledger or of its firm's list. It runs once per version, and only the last version of the
-- transaction is still that of the folder. It is deferred, so that the locks on the events come last, in the order that
-- lock_events asks for.
create or replace function publish_ledger_change() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

revoke all on function publish_ledger_change from public;

-- Wakes requests that wait for a list of folders when a folder is inserted or deleted, or a firm renamed. A new name or
-- version of a folder wakes them with its ledger (publish_ledger_change, publish_move).
create or replace function notify_lists() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

revoke all on function notify_lists from public;

-- Lets one transaction at a time forget or join rows of the log. Writers do not wait for it, because they only add rows.
create or replace function lock_log_of_changes() returns void
  language sql volatile
  return pg_advisory_xact_lock(hashtextextended('grandlivre log of changes', 0));

-- Forgets changes older than this time, oldest first and at most so many rows, and returns how many. In each folder the
-- latest of them stays without its ids and takes the place of the one before: cursors of earlier versions are refused.
-- Changes of the last day stay in any case: CHANGES_RETENTION_DAYS cannot be shorter.
create or replace function forget_ledger_changes(before timestamptz, at_most integer) returns bigint
  language plpgsql volatile security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

revoke all on function forget_ledger_changes from public;
grant execute on function forget_ledger_changes to grandlivre_service;

-- Joins the rows of one day (UTC), for each folder and kind, into the last of them, whose ranges then hold all of theirs: a
-- cursor between them gets more ranges than it needs, never fewer. Rows of other days stay apart: otherwise the first row
-- of a busy folder would grow with every run, and each older cursor would get all of its ranges. Takes the first day that
-- is not joined yet, or its part before this time. Returns how many rows were removed; null if there is no such day. The
-- last seven days stay exact in any case.
create or replace function compact_ledger_changes(before timestamptz) returns bigint
  language plpgsql volatile security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

revoke all on function compact_ledger_changes from public;
grant execute on function compact_ledger_changes to grandlivre_service;
