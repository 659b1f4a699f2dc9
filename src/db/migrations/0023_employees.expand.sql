-- Full exports without the personal data of employees (docs/spec/interface.md#groups-of-a-token).

-- Null: with it. Otherwise the same as `attempt`: a process of 0.2.0, which knows nothing of this column, cannot claim such
-- an export, which it would write with that data.
alter table exports add attempt_without_employees integer check (attempt_without_employees = attempt);

-- What is kept of a ledger has one more digest, that of accounts without that data.
delete from ledger_blocks;
