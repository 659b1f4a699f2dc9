-- Functions for requests whose tenant is not yet known. They run as their owner, past row-level security, and each call
-- covers one secret and one token only.

-- The third party of a secret, and the token if it belongs to that third party. A secret that was replaced is accepted
-- until it is retired. A token that has ended counts as unknown.
create or replace function caller_facts(secret_hash bytea, token_hash bytea)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, groups text[], activated boolean
  )
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select p.id, p.kind, p.disconnected_reason, s.under_maintenance,
           t.id, t.schema_id, t.level, t.firm_id, t.folder_id, t.groups, t.activated_at is not null
    from third_party_secrets k
    join third_parties p on p.id = k.third_party_id
    cross join service_state s
    left join tokens t
      on t.token_hash = caller_facts.token_hash and t.third_party_id = p.id
        and t.revoked_at is null and t.expires_at > now()
    where k.secret_hash = caller_facts.secret_hash and (k.retired_at is null or k.retired_at > now());
  end;

revoke all on function caller_facts from public;
grant execute on function caller_facts to grandlivre_service;

-- Marks a token as activated. Its trigger writes an event, which waits for the lock on the events of the schema: up to
-- 5 s during a seed of 500,000 movements. All tenants share the few connections of a process, so eight such calls
-- blocked all other requests. Hence the time limit: false leaves the activation to a later call. The update comes
-- before the lock on the events; a revocation takes the two in the same order.
create or replace function activate(of_schema bigint, token bigint) returns boolean
  language plpgsql volatile set lock_timeout = '250ms'
as $$
begin
  update tokens t set activated_at = now()
  where t.schema_id = of_schema and t.id = token and t.activated_at is null;
  return true;
exception when lock_not_available then
  return false;
end $$;

revoke all on function activate from public;

-- Authenticates one request. Counts it in the rate window of its token: the window begins with the first request and lasts
-- as long as its partner's setting says, or window_ms. The very first request of a token also activates it, unless its
-- third party is disconnected. Activation comes before the count, so that it never waits with a rate window locked. One
-- statement per request, because each round trip costs small routes a turn of a busy machine (four of them: p99 56 ms beside
-- two exports).
create or replace function admit(secret_hash bytea, token_hash bytea, window_ms integer)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, groups text[],
    requests integer, window_started_at timestamptz
  )
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    with known as materialized (
      select c.*,
             case when c.token_id is not null and not c.activated and c.disconnected_reason is null
               then activate(c.schema_id, c.token_id) end as activated_now,
             coalesce(p.window_ms, admit.window_ms) * interval '1 ms' as length
      from caller_facts(admit.secret_hash, admit.token_hash) c left join partner_limits p on p.third_party_id = c.third_party_id
    ), counted as (
      insert into rate_windows as w (schema_id, token_id, started_at, requests)
      select k.schema_id, k.token_id, now(), 1 from known k where k.token_id is not null
      on conflict (schema_id, token_id) do update set
        started_at = case when w.started_at + (select length from known) <= now()
          then now() else w.started_at end,
        requests = case when w.started_at + (select length from known) <= now()
          then 1 else w.requests + 1 end
      returning w.requests, w.started_at
    )
    select k.third_party_id, k.kind, k.disconnected_reason, k.under_maintenance,
           k.token_id, k.schema_id, k.level, k.firm_id, k.folder_id, k.groups, n.requests, n.started_at
    from known k left join counted n on true;
  end;

revoke all on function admit from public;
grant execute on function admit to grandlivre_service;

-- Processes of 0.2.0 call this. Their prepared statements fail if its columns change. They do not know groups, so a token
-- with groups counts as unknown there. A later step drops both functions.
create or replace function caller(secret_hash bytea, token_hash bytea)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, activated boolean
  )
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select c.third_party_id, c.kind, c.disconnected_reason, c.under_maintenance,
           case when c.groups is null then c.token_id end, c.schema_id, c.level, c.firm_id, c.folder_id, c.activated
    from caller_facts(caller.secret_hash, caller.token_hash) c;
  end;
create or replace function enter(secret_hash bytea, token_hash bytea, window_ms integer)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint,
    requests integer, window_started_at timestamptz
  )
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    select c.third_party_id, c.kind, c.disconnected_reason, c.under_maintenance,
           case when c.groups is null then c.token_id end, c.schema_id, c.level, c.firm_id, c.folder_id,
           c.requests, c.window_started_at
    from admit(enter.secret_hash, enter.token_hash, enter.window_ms) c;
  end;

revoke all on function caller, enter from public;
grant execute on function caller, enter to grandlivre_service;

-- Takes a request back from the rate window in which it was counted. Returns how many requests the window then counts; null
-- if it is over.
create or replace function uncount_request(of_schema bigint, of_token bigint, window_started_at timestamptz)
  returns integer
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    update rate_windows w set requests = w.requests - 1
      where w.schema_id = of_schema and w.token_id = of_token and w.started_at = uncount_request.window_started_at
      returning w.requests;
  end;

revoke all on function uncount_request from public;
grant execute on function uncount_request to grandlivre_service;

-- What the database knows about MASTER_KEY: the fingerprint of the adopted key or, before a key is adopted, the newest
-- secret; and, until rotate-key is done, the fingerprint of the next key.
create or replace function master_key_standing()
  returns table (fingerprint bytea, next_fingerprint bytea, newest_secret bytea)
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    select a.fingerprint, (select n.fingerprint from next_key n), case when a.fingerprint is null then (
      select k.secret_encrypted from (
        select secret_encrypted, created_at from third_party_secrets
        union all select secret_encrypted, created_at from signing_secrets
      ) k where k.secret_encrypted <> '' order by k.created_at desc limit 1) end
    from (values (true)) as database left join adopted_key a on true;
  end;

revoke all on function master_key_standing from public;
grant execute on function master_key_standing to grandlivre_service;

-- Adopts a key if the database has none. Returns the fingerprint that counts from now on: if two keys come at once, the
-- first.
create or replace function adopt_master_key(of_key bytea) returns bytea
  language sql volatile security definer set search_path = grandlivre, pg_temp
  begin atomic
    insert into adopted_key (fingerprint) values (of_key) on conflict do nothing;
    select fingerprint from adopted_key;
  end;

revoke all on function adopt_master_key from public;
grant execute on function adopt_master_key to grandlivre_service;

-- The fingerprint of the key that secrets are encrypted with until the end of this transaction: the last step of rotate-key
-- waits for it (src/commands/operators/rotate-key.ts), and keeps later callers waiting. Null before a key is adopted.
create or replace function sealing_key() returns bytea
  language plpgsql volatile security definer set search_path = grandlivre, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('grandlivre sealing', 0));
  -- A statement of its own sees what was committed while this one waited.
  return (select fingerprint from adopted_key);
end $$;

revoke all on function sealing_key from public;
grant execute on function sealing_key to grandlivre_service;

-- Whether a token prevents the suspension of the subscriptions that it sees (docs/spec/webhooks.md#suspended-subscriptions).
create or replace function opens_webhooks(token tokens) returns boolean
  language sql stable parallel safe
  return token.revoked_at is null and token.expires_at > now()
    and (token.groups is null or 'webhooks' = any (token.groups));

-- A new token ends the suspension of the subscriptions that it sees: their deliveries continue at once, and the time since
-- the last token ended counts toward no limit. This is a trigger because processes of earlier versions issue tokens, too.
create or replace function resume_subscriptions() returns trigger
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
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
end $$;

revoke all on function resume_subscriptions from public;
