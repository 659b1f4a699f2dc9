-- A new epoch begins by itself on a server that took the place of another (functions/epoch.sql).

create sequence epoch as bigint;
grant select on sequence epoch to grandlivre_service;
create sequence server_name as bigint;
-- Seconds since 1970.
create sequence epoch_began as bigint;
select setval('epoch_began', extract(epoch from now())::bigint);
grant select on sequence epoch_began to grandlivre_service;
-- The present epoch goes on, so cursors stay good. The name as this_server has it.
select setval('epoch', s.epoch), setval('server_name', hashtextextended(concat_ws('/', c.system_identifier::text,
    left(pg_walfile_name(pg_current_wal_lsn()), 8), 'service_state'::regclass::oid::text), 0) & 4503599627370495)
  from service_state s, pg_control_system() c;

create or replace function this_server() returns bigint language sql return 0;
create or replace function is_other_server() returns boolean language sql return false;
create or replace function pass_gate() returns bigint language plpgsql as 'begin return 0; end';
create or replace function draw(of regclass) returns bigint language plpgsql as 'begin return 0; end';
create or replace function draw_several(of regclass, count bigint) returns setof bigint
  language plpgsql as 'begin return; end';
create or replace function beyond_lost(last bigint, now timestamptz) returns bigint
  language plpgsql as 'begin return 0; end';
create or replace function begin_epoch(is_forced boolean) returns table (name text, last bigint, beyond bigint)
  language plpgsql as 'begin return; end';
create or replace function adopt_epoch() returns trigger language plpgsql as 'begin return null; end';

-- The column is left for processes of 0.2.0.
create trigger adopt_epoch after update of epoch on service_state for each row execute function adopt_epoch();

-- An identity column would draw past the gate.
alter table console_keys alter id drop identity;
create sequence console_key_ids as bigint;
select setval('console_key_ids', max(id)) from console_keys;
alter table console_keys alter id set default draw('console_key_ids');

-- Of the last claim (src/jobs/jobs.sql.ts).
alter table exports add column epoch integer;

-- Last, because requests write and read these tables, and wait from here until the commit.
alter table deliveries alter id set default draw('delivery_ids');
alter table events alter id set default draw('event_ids');
-- In which an event was committed, a subscription's last number was given, and the numbers of a run were. What is there is of
-- the present one: a default that is a constant rewrites no table.
do $$ begin
  execute (select string_agg(format('alter table %s add column epoch integer not null default %s', name, e.last_value), ';')
    from epoch e, unnest(array['events', 'subscriptions', 'sequence_runs']) as name);
end $$;
-- Set after the id, whose default passes the gate: 100,000 events take 0.47 s as without it, and 0.57 by a second pass.
alter table events alter epoch set default pg_sequence_last_value('epoch')::integer;
alter table subscriptions alter epoch set default pass_gate();
-- For processes of 0.2.0, which know no epochs.
alter table sequence_runs alter epoch set default pass_gate();
-- Of the first run of an epoch: the last number before the jump.
alter table sequence_runs add jumped_from bigint check (jumped_from < first_sequence);

-- The epoch of the last row. After the tables above: acts of staff take the head last.
alter table audit_head add epoch integer;
update audit_head set epoch = pg_sequence_last_value('epoch');
alter table audit_head alter epoch set not null;

-- A later step revokes USAGE of sequences from the service's role: processes of 0.2.0 draw by nextval, beside this version.
-- functions: sha256 af08b1d3dd13d7227df734038843c5334e9028161f79105ed04c6b9855f603de
