/**
 * What the benches of webhooks run on: the service as `npm start` runs it, on the embedded database, and subscribers
 * in a process of their own on the same machine.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { encrypt, makePartnerSecret, sha256 } from '../src/auth/secrets.ts'
import { insertThirdParty } from '../src/auth/third-parties.sql.ts'
import { publish } from '../src/events/publish.ts'
import { type Dataset, openDataset } from './dataset.ts'
import { interrupted, nextMessage, startPeer } from './own-process.ts'
import { createProgress, type ReportProgress } from './progress.ts'
import { type ServiceProcess, startServiceProcess } from './service-process.ts'
import type { Behaviour, Listening, Tally } from './webhook-receiver.ts'
import { forgetSubscriptions, insertSubscriptions, readThirdParty } from './webhooks.sql.ts'

export interface WebhookStage {
  dataset: Dataset
  service: ServiceProcess
  /** To the entries, from now on; the third party is made where there is none of that code. */
  subscribe(thirdPartyCode: string, behaviour: Behaviour, count: number): Promise<void>
  /** Entries with the numbers from `first` on, in one transaction, as an import tells of them. */
  write(count: number, first: number): Promise<void>
  /** Events that the healthy subscribers have got, repeats not counted. */
  count(): Promise<number>
  tally(): Promise<Tally>
  /** Removes all subscriptions, and forgets what subscribers have got. */
  clear(): Promise<void>
}

/**
 * A whole bench, to the end of the process: results go to a file of `results/`, the report to standard output.
 * @param reportOf a line for each thing that was measured
 */
export function runBench<Results>(
  file: string,
  measure: (stage: WebhookStage, progress: ReportProgress) => Promise<Results>,
  reportOf: (results: Results) => string[],
): void {
  const run = async (): Promise<void> => {
    const { report, end } = createProgress()
    await using stack = new AsyncDisposableStack()
    stack.defer(end)
    const measured = openWebhookStage(report, stack).then((stage) => measure(stage, report))
    const results = await Promise.race([measured, interrupted()])
    end()
    const folder = fileURLToPath(new URL('./results/', import.meta.url))
    mkdirSync(folder, { recursive: true })
    writeFileSync(folder + file, `${JSON.stringify(results, null, 2)}\n`)
    process.stdout.write(`${reportOf(results).join('\n')}\n`)
  }
  run().then(
    () => process.exit(),
    (error: Error) => {
      process.stderr.write(`${error.message}\n`)
      process.exit(1)
    },
  )
}

/** @param stack leaves all that was started */
async function openWebhookStage(
  progress: ReportProgress,
  stack: AsyncDisposableStack,
): Promise<WebhookStage> {
  const dataset = await openDataset(5_000, progress, stack)
  const client = new pg.Client(dataset.ownerUrl)
  await client.connect()
  stack.defer(() => client.end())
  await forgetSubscriptions(client)
  const receiver = startPeer(new URL('./webhook-receiver.ts', import.meta.url))
  stack.defer(receiver.stop)
  const ask = <Answer>(what: string): Promise<Answer> => {
    const answer = nextMessage<Answer>(receiver)
    receiver.child.send(what)
    return answer
  }
  const { url: receiverUrl } = await ask<Listening>('url')
  const service = await startServiceProcess(dataset.dataDir, { WEBHOOK_ALLOW_INSECURE: 'true' })
  stack.defer(service.stop)
  const { schemaId, folderId } = dataset.year
  return {
    dataset,
    service,
    subscribe: async (code, behaviour, count) => {
      const plain = makePartnerSecret()
      const secret = { hash: sha256(plain), encrypted: encrypt(plain, Buffer.from(dataset.masterKey, 'hex')) }
      // Where an earlier run has made it, it stays.
      await insertThirdParty(client, { code, name: code, kind: 'partner', secret })
      const thirdPartyId = await readThirdParty(client, code)
      await insertSubscriptions(client, {
        schemaId,
        thirdPartyId,
        postUrl: `${receiverUrl}/${behaviour}/`,
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
