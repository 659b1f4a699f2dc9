-- Writing events, and choosing the subscriptions that receive them.

-- Locks the events of a schema for writing until the transaction ends. This keeps the ids of a schema in the order of
-- commits. Taking any other lock after this one can deadlock, so events come last in their transaction; a transaction
-- that writes for several schemas takes them in ascending order.
create or replace function lock_events(of_schema bigint) returns void
  language sql volatile
  return pg_advisory_xact_lock(hashtextextended('grandlivre events of ' || of_schema, 0));

-- The scope of an event (docs/spec/webhooks.md#notification); firm and folder may be null.
create or replace function event_scope(of_schema bigint, of_firm bigint, of_folder bigint) returns json
  language sql stable
  return (
    select json_strip_nulls(json_build_object(
      'schemaId', of_schema,
      'firmId', firm.id,
      'firmSIRET', firm.siret,
      'accountingFolderId', folder.id,
      'accountingFolderRef', folder.reference,
      'accountingFolderSIRET', folder.siret))
    from (select of_schema as schema_id) as named
    left join folders folder on folder.schema_id = named.schema_id and folder.id = of_folder
    left join firms firm on firm.schema_id = named.schema_id and firm.id = coalesce(of_firm, folder.firm_id)
  );

-- Sets the firm of an event: the firm of its scope, which event_scope read under the lock on the events, so the firm at the
-- moment of the commit. This is a trigger because other programs and processes of earlier versions write events, too, and
-- some of their scopes leave out the firm. Imports, which write most events, set the firm themselves: on a busy machine
-- 100,000 events took 1.6 s without firms, 2.0 s with them, 2.7 s with the trigger.
create or replace function note_firm_of_event() returns trigger
  language plpgsql
as $$
begin
  new.firm_id := coalesce((new.scope ->> 'firmId')::bigint, case when new.folder_id is null then 0 end);
  if new.firm_id is null then
    new.firm_id := (select f.firm_id from grandlivre.folders f where f.schema_id = new.schema_id and f.id = new.folder_id);
  end if;
  return new;
end $$;

-- Publishes the move of a folder to another firm for both firms. The event for the former firm names that firm, and nothing
-- of the new one. It is deferred like publish_ledger_change, which publishes the ledger for the new firm.
create or replace function publish_move() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

revoke all on function publish_move from public;

-- Writes the event for a token's activation, because admit() activates tokens in SQL.
create or replace function publish_activation() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
begin
  perform lock_events(new.schema_id);
  insert into events (schema_id, folder_id, name, operation, scope, data)
    select new.schema_id, new.folder_id, 'connector', 'UPDATE',
           event_scope(new.schema_id, new.firm_id, new.folder_id), json_build_object('id', new.id, 'code', p.code)
    from third_parties p where p.id = new.third_party_id;
  perform pg_notify('grandlivre_events', new.schema_id::text);
  return null;
end $$;

revoke all on function publish_activation from public;

-- Whether these kinds and folders select an event. Numbering, reading by number and the route that lists the recipients of
-- an event all use this predicate. An event without a folder is for subscriptions to the whole schema.
create or replace function selects(on_events text[], folder_ids bigint[], event_name text, of_folder bigint)
  returns boolean
  language sql immutable parallel safe
  return event_name = any (on_events)
    and (folder_ids = '{}' or coalesce(of_folder = any (folder_ids), false));

-- Whether a subscription is enabled and receives an event.
create or replace function receives(subscription subscriptions, of_schema bigint, event_name text, of_folder bigint)
  returns boolean
  language sql immutable parallel safe
  return subscription.enabled
    and (subscription.schema_id is null or subscription.schema_id = of_schema)
    and selects(subscription.on_events, subscription.folder_ids, event_name, of_folder);

-- The position of a subscription that starts now: in one schema or, without one, in all of them (events being committed
-- in other transactions at that moment may then be skipped).
create or replace function latest_event(of_schema bigint) returns bigint
  language sql volatile
  return case when of_schema is null then coalesce(pg_sequence_last_value('event_ids'), 0)
    else coalesce((select max(e.id) from events e where e.schema_id = of_schema), 0) end;
