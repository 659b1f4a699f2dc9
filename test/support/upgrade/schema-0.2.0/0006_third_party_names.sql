-- Entries that a partner sent show its code and name, so a change of these is a change of the folders that hold such
-- entries: it moves them to a new ledger version, as a change of their own rows does.

-- Finds these folders. Partial: a ledger without such entries pays nothing for it.
create index entries_by_third_party on entries (third_party_id, schema_id, folder_id) where third_party_id is not null;

create function advance_ledger_versions_of_third_parties() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
declare
  renamed bigint[] := array(select n.id from changed n join former o on o.id = n.id
    where (n.code, n.name) is distinct from (o.code, o.name));
begin
  -- Disconnecting one changes no ledger.
  if cardinality(renamed) = 0 then
    return null;
  end if;
  -- Who has written entries of one, and not committed yet, holds a share of its row: at the second lock these are waited
  -- for, as the first look does not see them. Folders come before it, since their writers may be about to ask for such a
  -- share.
  for look in 1..2 loop
    perform from folders f
      where (f.schema_id, f.id) in
        (select e.schema_id, e.folder_id from entries e where e.third_party_id = any (renamed))
      order by f.schema_id, f.id for no key update;
    perform from third_parties p where p.id = any (renamed) order by p.id for update;
  end loop;
  update folders f set ledger_version = nextval('ledger_versions')
    where (f.schema_id, f.id) in
      (select e.schema_id, e.folder_id from entries e where e.third_party_id = any (renamed));
  return null;
end $$;

create trigger ledger_version after update on third_parties
  referencing old table as former new table as changed
  for each statement execute function advance_ledger_versions_of_third_parties();
