-- A subscription of a firm's token hears of that firm alone: each event says of which firm it is (functions/events.sql).

-- 0: it names neither firm nor folder. Null: every subscription of a firm had passed it when this column was added.
alter table events add firm_id bigint;

create or replace function note_firm_of_event() returns trigger language plpgsql as 'begin return new; end';
create trigger note_firm before insert on events
  for each row when (new.firm_id is null) execute function note_firm_of_event();

update events e set firm_id = coalesce((e.scope ->> 'firmId')::bigint, case when e.folder_id is null then 0
      else (select f.firm_id from folders f where f.schema_id = e.schema_id and f.id = e.folder_id) end)
  from (
    select s.schema_id, min(coalesce(p.position, s.start_position)) as position
    from subscriptions s left join subscription_positions p on (p.schema_id, p.subscription_id) = (s.schema_id, s.id)
    where s.level = 'firm' group by s.schema_id
  ) as numbered
  where e.schema_id = numbered.schema_id and e.id > numbered.position;

create index events_by_firm on events (schema_id, firm_id, name, id) where firm_id is not null;

create or replace function lock_events_of_changes(of_schema bigint) returns void language sql as 'select';
create or replace function publish_move() returns trigger language plpgsql as 'begin return null; end';
create constraint trigger publish_move after update on folders deferrable initially deferred
  for each row when (old.firm_id <> new.firm_id) execute function publish_move();

-- functions: sha256 e4c2c06686f3950fb871ea6068897bf425bfcbf86a9e44c22ae995f2760b9641
