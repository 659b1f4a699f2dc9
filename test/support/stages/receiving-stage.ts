/** The whole service, a subscriber on this machine, and a caller that makes subscriptions for it. */
import type pg from 'pg'
import type { Level } from '../../../src/auth/secrets.ts'
import { issueToken, type NewToken, type Opened, revokeToken } from '../../../src/auth/tokens.sql.ts'
import type { Config } from '../../../src/config.ts'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import type { NewEvent } from '../../../src/events/events.sql.ts'
import { publish } from '../../../src/events/publish.ts'
import { defaultTiming, type Timing } from '../../../src/timing.ts'
import { createTenants, credentials, folders } from '../ledgers/tenants.ts'
import { startReceiver } from '../receiver.ts'
import { createTestDatabase } from '../servers/database.ts'
import { type Answer, startTestService } from '../service.ts'

export type ReceivingStage = Awaited<ReturnType<typeof setReceivingStage>>

export async function setReceivingStage(settings: Partial<Config> = {}, timing: Timing = defaultTiming) {
  const database = await createTestDatabase()
  const staff = await createTenants(database.ownerUrl)
  const partnerSecret = await staff.thirdParty('ONE')
  const own = credentials(await staff.token('ONE', 'api', folders.first), partnerSecret)
  const strangersSecret = await staff.thirdParty('TWO')
  const stranger = credentials(await staff.token('TWO', 'api', folders.first), strangersSecret)
  const receiver = await startReceiver(partnerSecret, strangersSecret)
  const service = await startTestService(database, { webhookAllowInsecure: true, ...settings }, { timing })
  const owner = createOwnerPool(database.ownerUrl, { max: 1, applicationName: 'grandlivre test' })
  /** Calls a route below `/api/v1/webhook`. */
  const call = async (method: string, path: string, body?: unknown, headers = own): Promise<Answer> => {
    const response = await fetch(`${service.url}/api/v1/webhook${path}`, {
      method,
      headers: { ...headers, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: text === '' ? '' : JSON.parse(text) }
  }
  return {
    ownerUrl: database.ownerUrl,
    receiver,
    service,
    /** Headers of a company token of the first folder, and headers of another third party's. */
    own,
    stranger,
    /** The secret of the third party. */
    partnerSecret,
    call,
    /** Subscribes a path of the receiver to `document`. @throws {Error} with the answer, if it is not 201 */
    subscribe: async (path: string): Promise<{ id: number; signingSecret: string }> => {
      const answer = await call('POST', '', { postUrl: receiver.url + path, onEvents: ['document'] })
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
      return answer.body
    },
    /** A token of the third party, as staff issue it. */
    issue: async (level: Level, opened: Opened, limits?: Pick<NewToken, 'groups' | 'expiresAt'>) => {
      const scope = { ...opened, folderId: level === 'firm' ? null : opened.folderId }
      const issued = await inTransaction(owner, (client) =>
        issueToken(client, { thirdPartyCode: 'ONE', level, opened: scope, ...limits }),
      )
      return { id: issued!.id, headers: credentials(issued!.token, partnerSecret) }
    },
    /**
     * Revokes a token as staff do.
     * @param tokenId from `issue`
     */
    revoke: async (tokenId: string) =>
      void (await inTransaction(owner, (client) => revokeToken(client, tokenId))),
    publish: (events: NewEvent[]) => inTransaction(owner, (client) => publish(client, '100', events)),
    asOwner: <Result>(run: (client: pg.PoolClient) => Promise<Result>) => inTransaction(owner, run),
    // On the connection of `publish`, which a test may keep while it ends those of the service.
    // biome-ignore lint/suspicious/noExplicitAny: rows of any shape
    sql: async (text: string, values: unknown[] = []): Promise<any[]> =>
      (await owner.query(text, values)).rows,
    close: async () => {
      await service.stop()
      await receiver.close()
      await owner.end()
      await staff.end()
      await database.drop()
    },
  }
}
