/** Statements that erase firms and third parties, as the owner of the tables. */
import type { ClientBase } from 'pg'

export async function revokeTokensOfFirm(client: ClientBase, firmId: string): Promise<void> {
  await client.query(
    'update grandlivre.tokens set revoked_at = now() where firm_id = $1 and folder_id is null and revoked_at is null',
    [firmId],
  )
}

export async function lockFirm(client: ClientBase, firmId: string) {
  const { rows } = await client.query<{ schemaId: string }>(
    'select schema_id as "schemaId" from grandlivre.firms where id = $1 for update',
    [firmId],
  )
  return rows[0]
}

export async function foldersOfFirm(client: ClientBase, firmId: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    'select id from grandlivre.folders where firm_id = $1 order by id',
    [firmId],
  )
  return rows.map(({ id }) => id)
}

export async function subscriptionsWhere(
  client: ClientBase,
  column: 'schema_id' | 'firm_id' | 'third_party_id',
  id: string,
): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `select id from grandlivre.subscriptions where ${column} = $1 order by id`,
    [id],
  )
  return rows.map((row) => row.id)
}

export async function isLastFirm(client: ClientBase, schemaId: string, firmId: string): Promise<boolean> {
  const { rows } = await client.query<{ isLast: boolean }>(
    'select not exists (select from grandlivre.firms where schema_id = $1 and id <> $2) as "isLast"',
    [schemaId, firmId],
  )
  return rows[0]!.isLast
}

export async function deleteEvents(client: ClientBase, schemaId: string, most: number): Promise<number> {
  const { rowCount } = await client.query(
    `delete from grandlivre.events where ctid = any (array(
       select ctid from grandlivre.events where schema_id = $1 order by id limit $2))`,
    [schemaId, most],
  )
  return rowCount ?? 0
}

export async function deleteFirm(client: ClientBase, schemaId: string, firmId: string): Promise<void> {
  await client.query(
    `update grandlivre.events set data = 'null', scope = json_build_object('schemaId', schema_id)
     where schema_id = $1 and firm_id = $2 and data::text <> 'null'`,
    [schemaId, firmId],
  )
  await client.query('delete from grandlivre.firms where schema_id = $1 and id = $2', [schemaId, firmId])
}

export async function deleteSchema(client: ClientBase, schemaId: string): Promise<void> {
  await client.query('delete from grandlivre.schemas where schema_id = $1', [schemaId])
}

export async function deleteThirdParty(client: ClientBase, thirdPartyId: string): Promise<number> {
  await client.query('delete from grandlivre.third_party_secrets where third_party_id = $1', [thirdPartyId])
  const { rows } = await client.query<{ entries: number }>(
    'select count(*)::int as entries from grandlivre.entries where third_party_id = $1',
    [thirdPartyId],
  )
  if (rows[0]!.entries === 0)
    await client.query('delete from grandlivre.third_parties where id = $1', [thirdPartyId])
  else await client.query('delete from grandlivre.partner_limits where third_party_id = $1', [thirdPartyId])
  return rows[0]!.entries
}
