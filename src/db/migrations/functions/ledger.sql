-- Functions of triggers on the tables of a ledger.

-- The date of an entry must be in its exercice: exports of a period read only the exercices that it overlaps, so an
-- entry dated elsewhere would silently be missing.
create or replace function entries_lie_in_exercice() returns trigger
  language plpgsql set search_path = grandlivre, pg_temp
as $$
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
end $$;

-- The same check for a change of the exercice: it must still contain the dates of its entries.
create or replace function exercice_holds_entries() returns trigger
  language plpgsql set search_path = grandlivre, pg_temp
as $$
begin
  if exists (select from entries e where e.schema_id = new.schema_id and e.folder_id = new.folder_id
      and e.exercice_id = new.id and e.date not between new.start_date and new.end_date) then
    raise check_violation using message = format('exercice %s has entries outside %s to %s',
      new.id, new.start_date, new.end_date);
  end if;
  return null;
end $$;

-- Refuses changes that the triggers above cannot attribute: a truncate exposes no rows, and an update that moves a row
-- to another folder would not version the folder it leaves.
create or replace function refuse_unversioned_change() returns trigger
  language plpgsql
as $$
begin
  raise exception 'this % of % would not change ledger_version', tg_op, tg_table_name
    using hint = 'Delete the rows, and insert them again where they belong.';
end $$;

-- The entries of a folder that a text names (docs/spec/exports.md#one-entry), with their exercices: the entry with this id;
-- if there is none, those with a movement of this invoice number; if there is none, those that a partner sent under this id.
-- At most `at_most` of each. With `drafts`, only entries that await validation; without it, validated entries and, by id,
-- any entry.
--
-- It runs as its owner and checks the tenant itself. Row-level security would keep `->>`, which is not leakproof, out of
-- index conditions, and each call would read all of the folder's entries with partner metadata. The conditions on the hash,
-- on blank and on length are those of the indexes.
create or replace function entries_named(of_folder bigint, name text, drafts boolean, at_most integer)
  returns table (id bigint, exercice_id bigint)
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    with by_id as materialized (
      select e.id, e.exercice_id from entries e
      where e.schema_id = tenant() and e.folder_id = of_folder
        and e.id = case when name ~ '^[1-9][0-9]{0,15}$' then name::bigint end
        and (e.validated_at is null or not drafts)
    ), by_invoice as materialized (
      select e.id, e.exercice_id from entries e
      where e.schema_id = tenant() and e.folder_id = of_folder
        and e.id in (
          select m.entry_id from movements m
          where m.schema_id = tenant() and m.folder_id = of_folder and m.invoice_number = name
            and m.invoice_number <> '' and hashtext(left(m.invoice_number, -1)) = hashtext(left(name, -1)))
        and (e.validated_at is null) = drafts
        and not exists (select from by_id)
      order by e.id limit at_most
    ), by_partner_id as materialized (
      select e.id, e.exercice_id from entries e
      where e.schema_id = tenant() and e.folder_id = of_folder
        and e.partner_metadata ->> 'partnerId' = name and length(e.partner_metadata ->> 'partnerId') <= 255
        and (e.validated_at is null) = drafts
        and not exists (select from by_id) and not exists (select from by_invoice)
      order by e.id limit at_most
    )
    select n.id, n.exercice_id from by_id n
    union all select n.id, n.exercice_id from by_invoice n
    union all select n.id, n.exercice_id from by_partner_id n;
  end;

revoke all on function entries_named from public;
grant execute on function entries_named to grandlivre_service;
