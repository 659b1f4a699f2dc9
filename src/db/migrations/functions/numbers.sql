-- The numbers of entries (EcritureNum).

-- Gives each entry that was validated without a number the next one of its journal and exercice. A statement gives all
-- its numbers at once: row by row, each number would leave a dead version of the counter, and the next would step over all
-- of them. Entries that already have a number are read once; counters then continue after the highest. A digit is 0 to 9:
-- under some locales \d matches digits of other scripts, which no bigint has.
--
-- A counter begins when the first number is needed, after the highest number that the journal has in the exercice and
-- after the validated entries that have none: those come from a FEC that an earlier version imported, and exports number
-- them from 1. The lock on the folder (advance_ledger_version runs before) lets one transaction at a time number a
-- folder.
create or replace function number_entries() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

-- In a journal of an exercice, a number is given once, because an entry must be found under the number that was filed. An
-- entry that moved with its number could have the same number as an entry of its new journal.
create or replace function refuse_other_number() returns trigger
  language plpgsql
as $$
begin
  if new.number is distinct from old.number then
    raise check_violation using message =
      format('entry %s has the number %s, which cannot become %s', old.id, old.number, coalesce(new.number, 'null'));
  end if;
  raise check_violation using
    message = format('entry %s has the number %s in its journal and exercice, and cannot move to others', old.id, old.number),
    hint = 'Delete the entry, and insert it again where it belongs.';
end $$;
