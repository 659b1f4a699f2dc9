/**
 * What the webhook benches run on: the service as `npm start` runs it, on the embedded database, and
 * subscribers in a separate process on the same machine.
 */
import pg from 'pg'
import { encrypt, makeToken, sha256 } from '../../src/auth/secrets.ts'
import { insertThirdParty } from '../../src/auth/third-parties.sql.ts'
import { publish } from '../../src/events/publish.ts'
import { type Dataset, openDataset } from '../dataset.ts'
import { script, startListener } from '../own-process.ts'
import { type ServiceProcess, startServiceProcess } from '../service-process.ts'
import type { Behaviour, Tally } from './receiver.ts'
import { forgetSubscriptions, insertSubscriptions, readThirdParty } from './subscriptions.sql.ts'

export interface WebhookStage {
  dataset: Dataset
  service: ServiceProcess
  /** Subscribes to entries from now on; creates the third party if none has that code. */
  subscribe(thirdPartyCode: string, behaviour: Behaviour, count: number): Promise<void>
  /** Publishes events of entries numbered from `first`, in one transaction, as an import does. */
  write(count: number, first: number): Promise<void>
  /** Events that healthy subscribers have received, without repeats. */
  count(): Promise<number>
  tally(): Promise<Tally>
  /** Removes all subscriptions, and resets what subscribers have received. */
  clear(): Promise<void>
}

/** @param stack stops everything that was started */
export async function openWebhookStage(stack: AsyncDisposableStack): Promise<WebhookStage> {
  const dataset = await openDataset(5_000, stack)
  const client = new pg.Client(dataset.ownerUrl)
  await client.connect()
  stack.defer(() => client.end())
  await forgetSubscriptions(client)
  const receiver = await startListener(script('./webhooks/receiver.ts'), { env: {} })
  stack.defer(receiver.stop)
  const ask = async <Answer>(what: string): Promise<Answer> => {
    const answer = await Promise.race([fetch(`${receiver.url}/${what}`), receiver.failed])
    return (await answer.json()) as Answer
  }
  const service = await startServiceProcess(dataset.dataDir, { WEBHOOK_ALLOW_INSECURE: 'true' })
  stack.defer(service.stop)
  const { schemaId, folderId } = dataset.year
  return {
    dataset,
    service,
    subscribe: async (code, behaviour, count) => {
      const plain = makeToken('secret')
      const secret = { hash: sha256(plain), encrypted: encrypt(plain, Buffer.from(dataset.masterKey, 'hex')) }
      // If an earlier run has created it, it stays.
      await insertThirdParty(client, { code, name: code, kind: 'partner', secret })
      const thirdPartyId = await readThirdParty(client, code)
      await insertSubscriptions(client, {
        schemaId,
        thirdPartyId,
        postUrl: `${receiver.url}/${behaviour}/`,
        count,
      })
    },
    write: async (count, first) => {
      const events = Array.from({ length: count }, (_, place) => ({
        name: 'accountingLineEntry' as const,
        operation: 'CREATE' as const,
        data: { id: String(first + place) },
        folderId,
      }))
      await client.query('begin')
      await publish(client, schemaId, events)
      await client.query('commit')
    },
    count: () => ask('count'),
    tally: () => ask('tally'),
    clear: async () => {
      await forgetSubscriptions(client)
      await ask('reset')
    },
  }
}
