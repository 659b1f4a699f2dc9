-- Webhooks: what happened (events), who wants to know (subscriptions), how far each has been told (positions), and what
-- is being sent (deliveries with their attempts). Also the secrets of third parties, of which two are good during a
-- rotation.
--
-- There is no row per event and subscriber: an import of 180,000 entries is 180,000 narrow events, however many
-- listen. A subscription has a position in the events of each schema; a delivery is a batch of up to 100 consecutive
-- events behind it.

-- Whether the running transaction is the dispatcher's, which works for all tenants (and the retention of events). Like
-- tenant() it is a setting of the transaction, which requests never make.
create function delivering() returns boolean
  language sql stable parallel safe
  return coalesce(current_setting('grandlivre.delivering', true) = 'on', false);

-- The newest secret of a third party signs; those it has replaced are accepted in calls until they are retired.
create table third_party_secrets (
  third_party_id id not null references third_parties,
  secret_hash bytea primary key check (length(secret_hash) = 32),
  secret_encrypted bytea not null, -- AES-256-GCM under MASTER_KEY: webhooks are signed with the secret itself
  created_at timestamptz not null default clock_timestamp(),
  retired_at timestamptz -- null: the newest; otherwise the moment from which it is refused
);

create unique index third_party_secrets_newest on third_party_secrets (third_party_id) where retired_at is null;

insert into third_party_secrets (third_party_id, secret_hash, secret_encrypted, created_at)
  select id, secret_hash, secret_encrypted, created_at from third_parties;

-- Both name columns of third_parties that move; they are made anew as they were in the first migration, but for the
-- join with the secrets.
drop function enter, caller;
alter table third_parties drop column secret_hash, drop column secret_encrypted;

create function caller(secret_hash bytea, token_hash bytea)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, activated boolean
  )
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select p.id, p.kind, p.disconnected_reason, s.under_maintenance,
           t.id, t.schema_id, t.level, t.firm_id, t.folder_id, t.activated_at is not null
    from third_party_secrets k
    join third_parties p on p.id = k.third_party_id
    cross join service_state s
    left join tokens t
      on t.token_hash = caller.token_hash and t.third_party_id = p.id and t.revoked_at is null
    where k.secret_hash = caller.secret_hash and (k.retired_at is null or k.retired_at > now());
  end;

create function enter(secret_hash bytea, token_hash bytea, window_ms integer)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint,
    requests integer, window_started_at timestamptz
  )
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    with known as materialized (
      select c.* from caller(enter.secret_hash, enter.token_hash) c
    ), activated as (
      update tokens t set activated_at = now()
      from known k
      where t.schema_id = k.schema_id and t.id = k.token_id and not k.activated and k.disconnected_reason is null
    ), counted as (
      insert into rate_windows as w (schema_id, token_id, started_at, requests)
      select k.schema_id, k.token_id, now(), 1 from known k where k.token_id is not null
      on conflict (schema_id, token_id) do update set
        started_at = case when w.started_at + enter.window_ms * interval '1 ms' <= now()
          then now() else w.started_at end,
        requests = case when w.started_at + enter.window_ms * interval '1 ms' <= now()
          then 1 else w.requests + 1 end
      returning w.requests, w.started_at
    )
    select k.third_party_id, k.kind, k.disconnected_reason, k.under_maintenance,
           k.token_id, k.schema_id, k.level, k.firm_id, k.folder_id, n.requests, n.started_at
    from known k left join counted n on true;
  end;

revoke all on function caller, enter from public;
grant execute on function enter, delivering to grandlivre_service;

-- What happened, kept until retention. Ids of one schema are in the order of the commits: whoever writes events holds
-- lock_events(schema) from before the ids are drawn until the commit, so that nobody who reads up to an id can pass
-- over an event that is yet to be committed. Across schemas ids say nothing.
create sequence event_ids as bigint;

-- No foreign keys: schemas and folders are never deleted, and the checks would cost an import of 180,000 entries as
-- much again as the rows.
create table events (
  schema_id id not null,
  id bigint not null default nextval('event_ids'),
  folder_id id, -- null: of the schema as a whole
  name text not null,
  operation text not null check (operation in ('CREATE', 'UPDATE', 'DELETE', 'VOID')),
  scope json not null,
  data json not null,
  created_at timestamptz(3) not null default clock_timestamp(),
  primary key (schema_id, id)
);

-- The next event of some kinds behind a position, in a schema and in one of its folders: one probe per kind.
create index events_by_name on events (schema_id, name, id);
create index events_by_folder on events (schema_id, folder_id, name, id) where folder_id is not null;

-- Held until the transaction ends. Nothing else may be locked behind it, so events come last in their transaction;
-- who writes for several schemas goes in ascending order.
create function lock_events(of_schema bigint) returns void
  language sql volatile
  return pg_advisory_xact_lock(hashtextextended('grandlivre events of ' || of_schema, 0));

-- What an event says of where it happened (interface, section 2.7); firm and folder may be null.
create function event_scope(of_schema bigint, of_firm bigint, of_folder bigint) returns json
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

-- The first call of a token changes it, and is made by enter(): the one event that SQL has to write by itself.
create function publish_activation() returns trigger
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

create trigger publish_activation after update of activated_at on tokens for each row
  when (old.activated_at is null and new.activated_at is not null)
  execute function publish_activation();

create table subscriptions (
  -- Alone, and not behind schema_id: a subscription for all schemas has none.
  id id primary key,
  schema_id id references schemas, -- null: all schemas
  level text not null check (level in ('api', 'firm', 'staff')), -- who made it, which is who may see it
  firm_id id, -- of the token that made it
  third_party_id id not null references third_parties,
  post_url text not null check (length(post_url) between 1 and 2048),
  on_events text[] not null check (cardinality(on_events) between 1 and 50),
  folder_ids bigint[] not null default '{}', -- empty: the whole schema
  -- Where it begins in every schema that has no row in subscription_positions; see latest_event.
  start_position bigint not null,
  enabled boolean not null default true,
  disabled_at timestamptz,
  disabled_reason text,
  failing_since timestamptz, -- the first failure since the last success; null: none
  last_success_at timestamptz,
  created_at timestamptz(3) not null default clock_timestamp(),
  foreign key (schema_id, firm_id) references firms,
  check ((level = 'staff') = (firm_id is null)),
  check (level <> 'api' or cardinality(folder_ids) = 1),
  check (schema_id is not null or (level = 'staff' and folder_ids = '{}')),
  check (enabled = (disabled_at is null) and enabled = (disabled_reason is null))
);

create index subscriptions_of_schema on subscriptions (schema_id, third_party_id);
create index subscriptions_of_third_party on subscriptions (third_party_id);

-- Who is told of an event: the one predicate, for what is sent and for the route that says who would receive it. An
-- event of no folder is for those who listen to the whole schema.
create function receives(subscription subscriptions, of_schema bigint, event_name text, of_folder bigint)
  returns boolean
  language sql immutable parallel safe
  return subscription.enabled
    and (subscription.schema_id is null or subscription.schema_id = of_schema)
    and event_name = any (subscription.on_events)
    and (subscription.folder_ids = '{}' or coalesce(of_folder = any (subscription.folder_ids), false));

-- The position of a subscription that is to receive what is committed from now on: in one schema, or where none is
-- given in all of them (events that are just being committed elsewhere may then be passed over).
create function latest_event(of_schema bigint) returns bigint
  language sql volatile
  return case when of_schema is null then coalesce(pg_sequence_last_value('event_ids'), 0)
    else coalesce((select max(e.id) from events e where e.schema_id = of_schema), 0) end;

-- The id of the last event that was put into a delivery, or passed over because it is not for that subscription.
create table subscription_positions (
  schema_id id not null,
  subscription_id id not null references subscriptions on delete cascade,
  position bigint not null,
  primary key (schema_id, subscription_id)
);

create index subscription_positions_of_subscription on subscription_positions (subscription_id);

create sequence delivery_ids as bigint;

create table deliveries (
  schema_id id not null,
  id bigint not null default nextval('delivery_ids'),
  subscription_id id not null references subscriptions on delete cascade,
  first_event bigint not null,
  last_event bigint not null,
  events integer not null check (events between 1 and 100),
  body bytea, -- as it is signed and sent at every attempt; dropped when it is delivered
  state text not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  -- Made so far; the fence of whoever records the next one.
  attempts integer not null default 0,
  -- Of these, how many had been made when staff replayed it: the retry table counts from there.
  attempts_before_replay integer not null default 0,
  is_replay boolean not null default false,
  next_attempt_at timestamptz,
  created_at timestamptz(3) not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (schema_id, id),
  check (first_event <= last_event),
  check (attempts_before_replay between 0 and attempts),
  check (body is not null or state = 'delivered'),
  check ((next_attempt_at is not null) = (state = 'pending')),
  check ((finished_at is null) = (state = 'pending'))
);

-- A subscription goes on to its next batch only when this one has ended, which is what keeps the order. Replays are
-- sent between batches and promise none.
create unique index deliveries_one_pending on deliveries (subscription_id) where state = 'pending' and not is_replay;
-- What waits, found without a look at all that was delivered before.
create index deliveries_pending on deliveries (subscription_id, id) where state = 'pending';
create index deliveries_due on deliveries (next_attempt_at) where state = 'pending';
create index deliveries_of_subscription on deliveries (subscription_id, id);
create index deliveries_finished on deliveries (schema_id, finished_at);

create table delivery_attempts (
  schema_id id not null,
  delivery_id bigint not null,
  number integer not null check (number > 0),
  at timestamptz(3) not null,
  status integer check (status between 100 and 999), -- null: there was no answer
  latency_ms integer not null check (latency_ms >= 0),
  answer bytea check (length(answer) <= 4096), -- how it began
  error text, -- why it failed, where the status does not say so
  primary key (schema_id, delivery_id, number),
  foreign key (schema_id, delivery_id) references deliveries on delete cascade
);

do $$
declare
  webhook_table text;
begin
  foreach webhook_table in array array['events', 'subscriptions', 'subscription_positions', 'deliveries',
    'delivery_attempts']
  loop
    execute format('alter table %I enable row level security', webhook_table);
    execute format('create policy tenant on %I using (schema_id = tenant())', webhook_table);
    execute format('create policy delivering on %I using (delivering())', webhook_table);
    execute format('grant select, insert, update, delete on %I to grandlivre_service', webhook_table);
  end loop;
end $$;

-- What has been told is not rewritten.
revoke update on events from grandlivre_service;

-- To the dispatcher alone: the tenants there are, and what it signs with.
create policy delivering on schemas for select using (delivering());
alter table third_party_secrets enable row level security;
create policy delivering on third_party_secrets for select using (delivering());
grant select on third_party_secrets to grandlivre_service;
grant select (kind, disconnected_at) on third_parties to grandlivre_service;

grant usage on sequence ids, event_ids, delivery_ids to grandlivre_service;
revoke all on function publish_activation from public;
