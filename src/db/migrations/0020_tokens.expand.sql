-- What a token may be used for, and until when (docs/operators.md#tokens-with-groups-or-an-end). New names, because processes of 0.2.0 call the
-- former functions by statements that fail if their columns change.

create or replace function caller_facts(secret_hash bytea, token_hash bytea)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, groups text[], activated boolean
  )
  language plpgsql as 'begin return; end';
create or replace function admit(secret_hash bytea, token_hash bytea, window_ms integer)
  returns table (
    third_party_id bigint, kind text, disconnected_reason text, under_maintenance boolean,
    token_id bigint, schema_id bigint, level text, firm_id bigint, folder_id bigint, groups text[],
    requests integer, window_started_at timestamptz
  )
  language plpgsql as 'begin return; end';

-- Last, because each request reads tokens, and waits from here until the commit. Groups of null: all.
alter table tokens
  add groups text[] check (groups <@ '{movements,exports,webhooks,resources,employees}' and groups <> '{}'),
  add expires_at timestamptz not null default 'infinity';

-- functions: sha256 b97ca96854c264c7e9459117bdaeeb45f88d8b9ed4ab27c6906b7ebadd804537
