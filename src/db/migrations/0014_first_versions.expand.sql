-- A folder refuses the cursors of an earlier one with its id (functions/changes.sql). Those of folders that are there stay
-- good.
create or replace function begin_ledger() returns trigger language plpgsql as 'begin return null; end';
create trigger first_ledger_version before insert on folders for each row execute function begin_ledger();
create trigger first_ledger_change after insert on folders for each row execute function begin_ledger();

