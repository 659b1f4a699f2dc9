-- Tenants (schemas), the firms and folders in them, the third parties that call, and their tokens.
--
-- Every table that belongs to a tenant has schema_id as the first column of its key: row-level security compares
-- one column, and a distributed PostgreSQL can shard on it. third_parties and service_state belong to no tenant;
-- the service role sees of them only what the functions below give it.
--
-- Ids are handed out by one sequence in blocks (see ledger/ids.ts). They stay below 2^53: JSON clients hold
-- numbers as doubles, and ids travel as JSON numbers in events and in key/info.

do $$
begin
  if not exists (select from pg_roles where rolname = 'grandlivre_service') then
    create role grandlivre_service nologin;
  end if;
end $$;

grant usage on schema grandlivre to grandlivre_service;

create domain id as bigint check (value between 1 and 9007199254740991);

-- One value is a block of 1,000 ids. An importer that fills millions of rows asks once per block.
create sequence ids as bigint increment by 1000 minvalue 1000 start with 1000;

-- The tenant of the running transaction; null where none was set, and null equals nothing.
create function tenant() returns bigint
  language sql stable parallel safe
  return nullif(current_setting('grandlivre.schema_id', true), '')::bigint;

create type address as (
  number text,
  locating_index text,
  street_type text,
  street_name text,
  complement text,
  postal_code text,
  city text,
  country text
);

create table schemas (
  schema_id id primary key,
  name text not null,
  created_at timestamptz(0) not null default now()
);

create table firms (
  schema_id id not null references schemas,
  id id not null,
  name text not null,
  siret text check (siret ~ '^\d{9}(\d{5})?$'),
  primary key (schema_id, id)
);

create table folders (
  schema_id id not null,
  id id not null,
  firm_id id not null,
  name text not null,
  reference text,
  siret text check (siret ~ '^\d{9}(\d{5})?$'),
  capital bigint not null default 0, -- minor units
  currency text not null default 'EUR' check (currency ~ '^[A-Z]{3}$'),
  address address not null default row(null, null, null, null, null, null, null, null)::address,
  contact_first_name text,
  contact_last_name text,
  contact_phone_number text,
  contact_mobile_phone_number text,
  contact_mail text,
  rcs_producer_id text not null default '',
  rcs_name text not null default '',
  -- Changes with every transaction that changes the folder's ledger (trigger in the next migration). An ETag
  -- names it, so it is drawn from a sequence and never comes back.
  ledger_version bigint not null default 0,
  created_at timestamptz(0) not null default now(),
  primary key (schema_id, id),
  foreign key (schema_id, firm_id) references firms
);

create table third_parties (
  id id primary key,
  code text not null unique check (code ~ '^[A-Z0-9][A-Z0-9_-]{0,31}$'),
  name text not null,
  kind text not null check (kind in ('partner', 'customer')),
  secret_hash bytea not null unique check (length(secret_hash) = 32),
  secret_encrypted bytea not null, -- AES-256-GCM under MASTER_KEY: webhooks are signed with the secret itself
  disconnected_at timestamptz(0),
  disconnected_reason text,
  created_at timestamptz(0) not null default now(),
  check ((disconnected_at is null) = (disconnected_reason is null))
);

create table tokens (
  schema_id id not null,
  id id not null,
  third_party_id id not null references third_parties,
  level text not null check (level in ('api', 'firm')),
  firm_id id not null,
  folder_id id,
  token_hash bytea not null unique check (length(token_hash) = 32),
  hint text not null, -- the token's last four characters, so that staff can tell tokens apart in a list
  created_at timestamptz(0) not null default now(),
  activated_at timestamptz(0),
  revoked_at timestamptz(0),
  primary key (schema_id, id),
  foreign key (schema_id, firm_id) references firms,
  foreign key (schema_id, folder_id) references folders,
  check ((level = 'api') = (folder_id is not null))
);

-- Requests of a token in its current window. Unlogged: after a crash every window starts anew, which is harmless.
create unlogged table rate_windows (
  schema_id id not null,
  token_id id not null,
  started_at timestamptz not null,
  requests integer not null,
  primary key (schema_id, token_id)
) with (fillfactor = 50);

create table service_state (
  one boolean primary key default true check (one),
  under_maintenance boolean not null default false
);
insert into service_state default values;

-- What the service may know of a caller before it knows the tenant: runs as its owner, past row-level security,
-- and answers for one secret and one token only.
create function caller(secret_hash bytea, token_hash bytea)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, activated boolean
  )
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select p.id, p.kind, p.disconnected_reason, s.under_maintenance,
           t.id, t.schema_id, t.level, t.firm_id, t.folder_id, t.activated_at is not null
    from third_parties p
    cross join service_state s
    left join tokens t
      on t.token_hash = caller.token_hash and t.third_party_id = p.id and t.revoked_at is null
    where p.secret_hash = caller.secret_hash;
  end;

-- One call of that caller: it is counted in the window of its token, which begins with its first request, and the
-- first call of all activates the token, unless its third party is disconnected. One statement for every request,
-- because each round trip costs small routes a turn of a busy machine (four of them: p99 56 ms beside two exports).
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

alter table schemas enable row level security;
alter table firms enable row level security;
alter table folders enable row level security;
alter table tokens enable row level security;
alter table rate_windows enable row level security;

create policy tenant on schemas using (schema_id = tenant());
create policy tenant on firms using (schema_id = tenant());
create policy tenant on folders using (schema_id = tenant());
create policy tenant on tokens using (schema_id = tenant());
create policy tenant on rate_windows using (schema_id = tenant());

revoke all on function caller, enter from public;
grant execute on function enter, tenant to grandlivre_service;
grant select on schemas, firms, folders, tokens, rate_windows to grandlivre_service;
grant select (id, code, name) on third_parties to grandlivre_service;
