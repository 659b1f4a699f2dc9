-- Limits of one partner in place of the settings (docs/operators.md#limits-of-a-partner). Null: as the setting. Not in
-- third_parties: a new column would hold up every request until the end of the migration, and wait for those under way.
create table partner_limits (
  third_party_id id primary key references third_parties on delete cascade,
  requests integer check (requests > 0),
  window_ms integer check (window_ms > 0),
  concurrent integer check (concurrent > 0)
);
grant select on partner_limits to grandlivre_service;
