-- The list of a firm's ledgers, which requests wait for (docs/spec/ledgers.md#waiting-for-a-change-of-the-list): folders that come and
-- go, and new names of firms, wake them, as changes of ledgers do.
create or replace function notify_lists() returns trigger language plpgsql as 'begin return null; end';
create trigger notify_lists after insert or delete on folders
  for each row execute function notify_lists();
create trigger notify_lists_of_firm after update on firms for each row when (old.name <> new.name)
  execute function notify_lists();

create or replace function ledger_cursors(
  of_schema bigint, of_folders bigint[], versions bigint[], of_rendering text) returns table (folder_id bigint, cursor text)
  language sql as 'select null::bigint, null::text';

-- A request that was held does not count in the rate of its token.
create or replace function uncount_request(of_schema bigint, of_token bigint, window_started_at timestamptz)
  returns integer language sql as 'select 0';

-- functions: sha256 4faa5ee809e0dca20c9c70b14a42a41e270cc926873548c9c07720a162f4d6f4
