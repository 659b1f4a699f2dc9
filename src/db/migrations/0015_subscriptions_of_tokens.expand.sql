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

-- A subscription that a token made is suspended while no token sees it (functions/access.sql).

create index tokens_in_use on tokens (third_party_id, folder_id, firm_id) where revoked_at is null;

create or replace function opens_webhooks(token tokens) returns boolean language sql as 'select true';
create or replace function resume_subscriptions() returns trigger language plpgsql as 'begin return null; end';
create trigger resume_subscriptions after insert on tokens for each row execute function resume_subscriptions();

-- The time that a retry was planned for which was sent ahead, or for which a receiver asked.
alter table subscriptions add woken_at timestamptz;

-- Last, because each request reads tokens, and waits from here until the commit.
create policy delivering on tokens for select using (delivering());

-- functions: sha256 94d573f12121fc2a0221cd1669e20cb1e76cfbdf8c567e4912dce1fb4e1f8510
