-- What a token may be used for, and until when (docs/operators.md#tokens). New names, because processes of 0.2.0 call the
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

-- functions: sha256 7411aad176379cba3ad183b9c56e0b91c0da8736cb3f085bfdc9928633eca51d
