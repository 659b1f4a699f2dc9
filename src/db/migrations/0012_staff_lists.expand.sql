-- What the console lists of all tenants: the exports and readers of one folder, and the tokens of one third party.
create index exports_of_folder on exports (folder_id, created_at);
create index tokens_of_third_party on tokens (third_party_id, id);
create index tokens_of_firm on tokens (schema_id, firm_id, folder_id) where revoked_at is null;
