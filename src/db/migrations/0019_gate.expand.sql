-- A new epoch begins by itself on a server that took the place of another (functions/epoch.sql).

create sequence epoch as bigint;
create sequence server_name as bigint;
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

-- Last, because requests write and read these tables, and wait from here until the commit.
alter table deliveries alter id set default draw('delivery_ids');
alter table events alter id set default draw('event_ids');

-- functions: sha256 61f227cf638c2ee5a883d547a3196003cb341a69503f08dbd06bdbcd9a4300d7
