/**
 * The whole service on a primary with a standby, a partner that reads a ledger, and a subscriber. The service reaches
 * its database through an address that is moved to the standby, as a name or a virtual address is.
 */
import type pg from 'pg'
import { createOwnerPool, inTransaction } from '../../../src/db/pool.ts'
import { publish } from '../../../src/events/publish.ts'
import { startReceiver } from '../receiver.ts'
import { startProxy } from '../servers/proxy.ts'
import { startTestService } from '../service.ts'
import { documentEvent } from '../stages/webhooks.ts'
import { fillPrimary } from './fill-primary.ts'
import { startReplication } from './standby.ts'

export type LossyFailover = Awaited<ReturnType<typeof setLossyFailover>>

export async function setLossyFailover() {
  const replication = await startReplication()
  const { primary, standby } = replication
  const { staff, secret, thirdPartyId, company, firm } = await fillPrimary(primary.ownerUrl)
  await staff.end()
  const receiver = await startReceiver(secret)
  const address = await startProxy(primary.ownerUrl)
  const service = await startTestService({ ownerUrl: address.url }, { webhookAllowInsecure: true })
  let owner = ownerOf(primary.ownerUrl)
  let isLost = false
  /** Kills the primary, and moves the address of the service to the standby. */
  const lose = async () => {
    isLost = true
    await owner.end()
    await primary.stop()
    address.redirectTo(standby.ownerUrl)
    owner = ownerOf(standby.ownerUrl)
  }
  return {
    ...replication,
    service,
    receiver,
    /** Headers of a company token of folder 111, and of a firm token of its firm. */
    company,
    firm,
    thirdPartyId,
    /** On the server that the address leads to. */
    // biome-ignore lint/suspicious/noExplicitAny: rows of any shape
    sql: async (text: string, values: unknown[] = []): Promise<any[]> =>
      (await owner.query(text, values)).rows,
    /** Publishes `document` events of these names of folder 111, each in a transaction of its own. */
    publish: async (names: string[]) => {
      for (const name of names)
        await inTransaction(owner, (client) => publish(client, '100', [documentEvent(name, '111')]))
    },
    lose,
    /** Promotes the standby, after what `lose` does. */
    promote: async () => {
      if (!isLost) await lose()
      await standby.promote()
    },
    close: async () => {
      await service.stop()
      await receiver.close()
      await owner.end()
      await address.cut()
      await replication.drop()
    },
  }
}

function ownerOf(url: string): pg.Pool {
  return createOwnerPool(url, { max: 1, applicationName: 'grandlivre test' })
}
