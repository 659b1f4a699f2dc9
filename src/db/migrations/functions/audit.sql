-- The chain of the audit. No role but the owner may read or write its tables; the service role may call append_requests,
-- expired_audit and forget_audit.

-- SHA-256 of the UTF-8 text of a JSON array of strings and nulls: the hash of the row before, then the columns of this
-- row. JSON keeps the columns apart, whatever they contain. The time is in seconds with six decimals, in any time zone of
-- the session. src/audit/verify.ts computes the same.
create or replace function audit_hash(previous bytea, of_row audit_rows) returns bytea
  language sql stable
  return sha256(convert_to(array_to_json(array[
    encode(previous, 'hex'), of_row.number::text, extract(epoch from of_row.at)::text, of_row.third_party_id::text,
    of_row.token_id::text, of_row.staff, of_row.act, of_row.schema_id::text, of_row.folder_id::text, of_row.request_id,
    of_row.details, of_row.rows::text, of_row.bytes::text, of_row.sha256, of_row.cursor, of_row.outcome, of_row.code
  ])::text, 'UTF8'));

revoke all on function audit_hash from public;

-- Appends rows in the order of the array, whose members have the names of the columns. The lock on the head lasts until
-- the transaction ends, so this call should be its last. Only the owner may call this, because rows name staff.
--
-- The first row of a new epoch says so, and its number jumps: the last rows of the former server may be lost, and no other
-- row may get their numbers.
create or replace function append_audit(given json, by_staff text) returns bigint
  language plpgsql set search_path = grandlivre, pg_temp
as $$
declare
  head audit_head;
  added audit_rows;
  is_whole boolean;
  epoch bigint;
begin
  select * into strict head from audit_head for update;
  epoch := pass_gate();
  if head.epoch <> epoch then
    added.at := clock_timestamp();
    added.number := beyond_lost(head.count, added.at);
    added.act := 'epoch';
    added.details := format('{"epoch":%s,"former":%s,"last":%s}', epoch, head.epoch, head.count);
    added.outcome := 'done';
    added.hash := audit_hash(head.hash, added);
    insert into audit_rows values (added.*);
    head := (head.one, added.number, added.hash, epoch);
  end if;
  for added in select * from json_populate_recordset(null::audit_rows, given) loop
    if added.act = 'epoch' then
      raise exception 'Only the database begins an epoch' using errcode = 'invalid_parameter_value';
    end if;
    head.count := head.count + 1;
    added.number := head.count;
    added.at := coalesce(added.at, clock_timestamp());
    added.staff := by_staff;
    -- The address of a file names its export alone.
    if added.act in ('GET /files', 'HEAD /files') then
      is_whole := added.act = 'GET /files' and added.outcome = 'sent' and added.details::json -> 'from' is null;
      select e.folder_id, case when is_whole then e.rows end, case when is_whole then coalesce(e.file_sha256, e.sha256) end
      into added.folder_id, added.rows, added.sha256
      from exports e where e.schema_id = added.schema_id and e.id = added.details::json ->> 'exportId';
    end if;
    added.hash := audit_hash(head.hash, added);
    head.hash := added.hash;
    insert into audit_rows values (added.*);
  end loop;
  update audit_head h set count = head.count, hash = head.hash, epoch = head.epoch;
  return head.count;
end $$;

revoke all on function append_audit from public;

-- Appends the requests of one process, each batch once only. The first batch of a process forgets the processes that ended
-- long ago.
create or replace function append_requests(given json, of_sender uuid, of_batch bigint) returns bigint
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
begin
  insert into audit_batches as b (sender, batch) values (of_sender, of_batch)
  on conflict (sender) do update set batch = excluded.batch, at = excluded.at where b.batch < excluded.batch;
  if not found then
    return (select count from audit_head);
  end if;
  if of_batch = 1 then
    delete from audit_batches where at < clock_timestamp() - interval '1 day' and sender <> of_sender;
  end if;
  return append_audit(given, null);
end $$;

revoke all on function append_requests from public;
grant execute on function append_requests to grandlivre_service;

-- Among the first at_most rows: the last one up to which all rows are older than the given months. No row if there is none.
create or replace function expired_audit(months integer, at_most integer) returns table (count bigint, hash bytea)
  language sql stable security definer set search_path = grandlivre, pg_temp
  begin atomic
    with oldest as materialized (
      select r.number, r.at, r.hash from audit_rows r order by r.number limit expired_audit.at_most
    ), kept as (
      select min(o.number) as number from oldest o
      where o.at >= now() - make_interval(months => greatest(expired_audit.months, 1))
    )
    select o.number, o.hash from oldest o, kept k
    where k.number is null or o.number < k.number
    order by o.number desc limit 1;
  end;

revoke all on function expired_audit from public;
grant execute on function expired_audit to grandlivre_service;

-- Deletes the rows up to a number that expired_audit has given, and writes the signed start of the rest. Rows of the last
-- month stay in any case.
create or replace function forget_audit(until bigint, signed_at timestamptz, of_signature bytea, months integer)
  returns bigint
  language plpgsql security definer set search_path = grandlivre, pg_temp
as $$
declare
  forgotten bigint;
begin
  if exists (
    select from audit_rows r
    where r.number <= until and r.at >= now() - make_interval(months => greatest(forget_audit.months, 1))
  ) then
    raise exception 'Some rows of the audit up to % are not old enough to be deleted', until;
  end if;
  update audit_start set count = until, hash = r.hash, at = signed_at, signature = of_signature
  from audit_rows r where r.number = until;
  if not found then
    return 0;
  end if;
  perform set_config('grandlivre.audit_retention', 'on', true);
  delete from audit_rows r where r.number <= until;
  get diagnostics forgotten = row_count;
  perform set_config('grandlivre.audit_retention', 'off', true);
  perform append_audit(json_build_array(json_build_object(
    'act', 'audit retention', 'outcome', 'done',
    'details', format('{"months":%s,"rows":%s,"until":%s}', months, forgotten, until))), null);
  return forgotten;
end $$;

revoke all on function forget_audit from public;
grant execute on function forget_audit to grandlivre_service;

-- Keeps the owner from changing rows by mistake. The owner can still do so on purpose, and `audit verify` finds that.
create or replace function refuse_audit_change() returns trigger
  language plpgsql
as $$
begin
  if tg_op = 'DELETE' and current_setting('grandlivre.audit_retention', true) = 'on' then
    return old;
  end if;
  raise exception 'Rows of the audit are never changed, and only retention deletes them';
end $$;
