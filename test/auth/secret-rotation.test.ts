import { expect, test } from 'vitest'
import { makeToken, sha256 } from '../../src/auth/secrets.ts'
import { rotateSecret } from '../../src/auth/third-parties.sql.ts'
import { createOwnerPool, inTransaction } from '../../src/db/pool.ts'
import { forTests } from '../support/for-tests.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { request, startTestService } from '../support/service.ts'

const database = forTests(() => createTestDatabase())
const staff = forTests(() => createTenants(database.ownerUrl))
const owner = forTests(() => createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'test owner' }))
const service = forTests(() => startTestService(database))

test('two secrets are accepted until the older one is retired; the newer one signs', async () => {
  const old = await staff.thirdParty('ROTATED')
  const token = await staff.token('ROTATED', 'api', folders.first)
  const rotate = async (keepSeconds: number) => {
    const plain = makeToken('secret')
    const secret = { hash: sha256(plain), encrypted: Buffer.from(plain) }
    await inTransaction(owner, (client) => rotateSecret(client, 'ROTATED', secret, keepSeconds))
    return plain
  }
  /** The codes of refusals; undefined for each secret that is accepted. */
  const refusals = (...secrets: string[]) =>
    Promise.all(
      secrets.map(async (secret) => {
        const answer = await request(`${service.url}/api/v1/key/info`, credentials(token, secret))
        return answer.status === 200 ? undefined : answer.body.error.code
      }),
    )
  const signing = async () => {
    const { rows } = await staff.client.query(
      `select convert_from(k.secret_encrypted, 'utf8') as plain from grandlivre.third_party_secrets k
         join grandlivre.third_parties t on t.id = k.third_party_id where t.code = 'ROTATED' and k.retired_at is null`,
    )
    return rows.map((row) => row.plain)
  }
  const second = await rotate(3600)
  expect(await refusals(old, second)).toEqual([undefined, undefined])
  expect(await signing()).toEqual([second])
  // Another rotation does not extend how long an older secret is kept.
  const third = await rotate(7200)
  expect(await refusals(old, second, third)).toEqual([undefined, undefined, undefined])
  await staff.client.query(
    `update grandlivre.third_party_secrets set retired_at = retired_at - interval '61 minutes' where retired_at is not null`,
  )
  const invalid = 'ERR-INVALID-SECRET'
  expect(await refusals(old, second, third)).toEqual([invalid, undefined, undefined])
  const fourth = await rotate(0)
  expect(await refusals(old, second, third, fourth)).toEqual([invalid, invalid, invalid, undefined])
  expect(await signing()).toEqual([fourth])
})
