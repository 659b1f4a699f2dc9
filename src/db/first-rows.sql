-- The rows of a new database, after schema.sql. A database that was upgraded got them by migrations.

insert into service_state default values;

-- Sources a validated entry can come from, as a table so that a mistyped code cannot load.
insert into sources values ('E'), ('M'), ('O'), ('EXT'), ('L'), ('IB'), ('P'), ('AN'), ('OD_TVA'), ('OD_CALC_IS'),
  ('OD_ECART'), ('REM_BQ'), ('RB_MANUEL'), ('WORKSHEET'), ('QUADRA'), ('CEGID'), ('ACD'), ('FEC'), ('EXCEL'),
  ('RB_JDC'), ('RB_QT'), ('RB_SB'), ('RB_FTP'), ('RTVR'), ('QUICK'), ('ABO'), ('PRLV_SEPA'), ('VIRT_SEPA'), ('API');

insert into audit_head (count, hash, epoch) values (0, decode(repeat('00', 32), 'hex'), 1);
insert into audit_start (count, hash) values (0, decode(repeat('00', 32), 'hex'));

-- The first epoch, on this server (functions/epoch.sql).
select setval('epoch', 1), setval('epoch_began', extract(epoch from now())::bigint);
select set_config('grandlivre.system_identifier', system_identifier::text, true) from pg_control_system();
select setval('server_name', this_server());
