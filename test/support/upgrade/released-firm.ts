/** A firm in a database of the release 0.2.0, made by its own code: one large folder and small ones, a partner, a subscription. */
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import { credentials } from '../ledgers/tenants.ts'
import { environment, runNode } from '../process.ts'
import { testMasterKey } from '../service.ts'

export interface ReleasedFolder {
  schemaId: string
  firmId: string
  folderId: string
  /** The last exercice has nearly all movements. */
  exercices: { id: string }[]
}

export interface ReleasedFirm {
  large: ReleasedFolder
  small: ReleasedFolder[]
  /** Headers of a firm token. Requests name their folder. */
  signed: Record<string, string>
  secret: string
}

const program = `
import pg from 'pg'
import { encrypt, makePartnerSecret, makeToken, sha256 } from './src/auth/secrets.ts'
import { insertThirdParty } from './src/auth/third-parties.sql.ts'
import { insertToken } from './src/auth/tokens.sql.ts'
import { createFolder } from './src/ledger/tenants.sql.ts'
import { seed } from './src/sample/seed.ts'
const { url, key, movements, smalls } = JSON.parse(process.argv.at(-1))
const large = await seed(url, { movements, year: 2025, reference: 'LARGE' })
const client = new pg.Client({ connectionString: url })
await client.connect()
const { schemaId, firmId } = large
const small = []
for (let number = 1; number <= smalls; number += 1) {
  const reference = 'SMALL-' + number
  const { rows } = await client.query("select nextval('grandlivre.ids') as id")
  await createFolder(client, { schemaId, firmId, id: rows[0].id, name: reference, reference })
  small.push(await seed(url, { movements: 1000, year: 2025, seed: number + 1, reference, replace: true }))
}
const secret = makePartnerSecret()
const stored = { hash: sha256(secret), encrypted: encrypt(secret, Buffer.from(key, 'hex')) }
await insertThirdParty(client, { code: 'FOLLOWER', name: 'Follower', kind: 'partner', secret: stored })
const token = makeToken('firm')
const opened = { schemaId, firmId, folderId: null }
await insertToken(client, { thirdPartyCode: 'FOLLOWER', level: 'firm', opened, hash: sha256(token), hint: 'hint' })
await client.end()
console.log(JSON.stringify({ large, small, token, secret }))
`

/** @param former a checkout of that release, whose service has made the database */
export async function seedReleasedFirm(
  former: string,
  url: string,
  sizes: { movements: number; smalls: number },
): Promise<ReleasedFirm> {
  const words = ['--input-type=module', '--eval', program, '--']
  const asked = JSON.stringify({ url, key: testMasterKey.toString('hex'), ...sizes })
  const { output, ended } = runNode([...words, asked], environment, former)
  const [code] = await ended
  if (code !== 0) throw new Error(`The firm was not made: ${output.error}`)
  const { token, ...firm } = JSON.parse(output.out)
  return { ...firm, signed: credentials(token, firm.secret) }
}

/** Writes an event as `event emit` of that release does. */
export async function publishAsReleased(url: string, folder: ReleasedFolder) {
  const owner = createOwnerPool(url, { max: 1, applicationName: 'grandlivre test' })
  return {
    publish: (name: string) =>
      inTransaction(owner, async (client) => {
        const { schemaId, folderId } = folder
        await client.query('select grandlivre.lock_events($1)', [schemaId])
        await client.query(
          `insert into grandlivre.events (schema_id, folder_id, name, operation, scope, data)
           values ($1::bigint, $2::bigint, 'document', 'CREATE', grandlivre.event_scope($1, null, $2), $3::json)`,
          [schemaId, folderId, JSON.stringify({ id: '77', kind: 'PF', name })],
        )
        await client.query(`select pg_notify('grandlivre_events', $1)`, [schemaId])
      }),
    end: () => owner.end(),
  }
}

/** Does the same as `maintenance on` of that release. */
export async function turnMaintenanceOn(former: string, url: string): Promise<void> {
  const statement = `
import pg from 'pg'
import { setMaintenance } from './src/auth/maintenance.sql.ts'
const client = new pg.Client({ connectionString: process.argv.at(-1) })
await client.connect()
await setMaintenance(client, true)
await client.end()
`
  const { output, ended } = runNode(
    ['--input-type=module', '--eval', statement, '--', url],
    environment,
    former,
  )
  const [code] = await ended
  if (code !== 0) throw new Error(`Maintenance is not on: ${output.error}`)
}
