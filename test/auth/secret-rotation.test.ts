import { expect, test } from 'vitest'
import { makeToken, sha256 } from '../../src/auth/secrets.ts'
import { rotateSecret } from '../../src/auth/third-parties.sql.ts'
import { createOwnerPool, inTransaction } from '../../src/db/pool.ts'
import { createTenants, credentials, folders } from '../support/ledgers/tenants.ts'
import { createTestDatabase } from '../support/servers/database.ts'
import { request, startTestService } from '../support/service.ts'

test('two secrets are accepted until the older one is retired; the newer one signs', async () => {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const owner = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'test owner' })
  const old = await staff.thirdParty('ROTATED')
  const token = await staff.token('ROTATED', 'api', folders.first)
  const rotate = async (keepSeconds: number) => {
    const plain = makeToken('secret')
    const secret = { hash: sha256(plain), encrypted: Buffer.from(plain) }
    expect(await inTransaction(owner, (client) => rotateSecret(client, 'ROTATED', secret, keepSeconds))).toBe(
      true,
    )
    return plain
  }
  const service = await startTestService(database)
  const responses = async (...secrets: string[]) => {
    const codes: string[] = []
    for (const secret of secrets) {
      const { status, body } = await request(`${service.url}/api/v1/key/info`, credentials(token, secret))
      codes.push(status === 200 ? 'accepted' : body.error.code)
    }
    return codes
  }
  const signing = async () => {
    const { rows } = await staff.client.query(
      `select convert_from(k.secret_encrypted, 'utf8') as plain from grandlivre.third_party_secrets k
         join grandlivre.third_parties t on t.id = k.third_party_id where t.code = 'ROTATED' and k.retired_at is null`,
    )
    return rows.map((row) => row.plain)
  }
  const second = await rotate(3600)
  expect(await responses(old, second)).toEqual(['accepted', 'accepted'])
  expect(await signing()).toEqual([second])
  // Another rotation does not extend how long an older secret is kept.
  const third = await rotate(7200)
  expect(await responses(old, second, third)).toEqual(['accepted', 'accepted', 'accepted'])
  await staff.client.query(
    `update grandlivre.third_party_secrets set retired_at = retired_at - interval '61 minutes' where retired_at is not null`,
  )
  expect(await responses(old, second, third)).toEqual(['ERR-INVALID-SECRET', 'accepted', 'accepted'])
  const fourth = await rotate(0)
  expect(await responses(old, second, third, fourth)).toEqual([
    'ERR-INVALID-SECRET',
    'ERR-INVALID-SECRET',
    'ERR-INVALID-SECRET',
    'accepted',
  ])
  expect(await signing()).toEqual([fourth])
  await service.stop()
  await owner.end()
  await staff.end()
  await database.drop()
})
