/** The faults that alerts are for: how a test causes and repairs each, and which alert reports it. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { answerWith } from '../receiver.ts'
import { fillDisk } from './fill-disk.ts'
import { inDays, type OperatedStage, receiverPath } from './operated-stage.ts'

export interface Fault {
  name: string
  /** The alert that reports the fault. */
  alert: string
  /** Alerts that may fire, too, because of consequences of the fault. */
  companions: string[]
  cause(stage: OperatedStage): Promise<void>
  repair(stage: OperatedStage): Promise<void>
}

/**
 * Alerts that follow if the database is away or full: requests fail, connections are cut, and rows of the audit wait.
 */
const ofTheDatabase = [
  'GrandlivreConnectionsLost',
  'GrandlivreUnavailable',
  'GrandlivreNotReady',
  'GrandlivreAuditWaiting',
]

export const faults: Fault[] = [
  {
    name: 'database down',
    alert: 'GrandlivreDatabaseDown',
    // The replica gets no more of the log, and so falls behind.
    companions: [...ofTheDatabase, 'GrandlivreReplicaDown'],
    cause: ({ replication }) => replication.primary.stop(),
    repair: ({ replication }) => replication.primary.start(),
  },
  {
    name: 'replica dead',
    alert: 'GrandlivreReplicaDown',
    companions: ['GrandlivreConnectionsLost'],
    cause: ({ replication }) => replication.standby.stop(),
    repair: ({ replication }) => replication.standby.start(),
  },
  {
    name: 'disk full',
    alert: 'GrandlivreDatabaseExhausted',
    companions: ofTheDatabase,
    cause: async ({ disk }) => fillDisk(fillerOn(disk)),
    repair: async ({ disk }) => rm(fillerOn(disk)),
  },
  {
    name: 'store refusing',
    alert: 'GrandlivreStoreFailing',
    companions: ['GrandlivreExportsFailing'],
    cause: async ({ store }) => store.inflict(() => ({ status: 403, code: 'AccessDenied' })),
    repair: async ({ store }) => store.inflict(() => undefined),
  },
  {
    name: 'store slow',
    alert: 'GrandlivreStoreSlow',
    companions: [],
    cause: async ({ store }) => store.inflict(() => ({ delayMs: 7_000 })),
    repair: async ({ store }) => store.inflict(() => undefined),
  },
  {
    name: 'receiver down',
    alert: 'GrandlivreReceiversFailing',
    companions: [],
    cause: async ({ receiver }) => receiver.behave(receiverPath, answerWith(500)),
    repair: async ({ receiver, sendAgain }) => {
      receiver.behave(receiverPath, answerWith(204))
      await sendAgain()
    },
  },
  {
    name: 'queue stuck',
    alert: 'GrandlivreExportQueueStuck',
    // The upload that hangs counts when it ends.
    companions: ['GrandlivreStoreSlow'],
    // The one full export that this process runs at once hangs in its upload, so none is claimed.
    cause: async ({ store, triggerExport }) => {
      store.inflict(({ method }) => (method === 'PUT' || method === 'POST' ? 'silent' : undefined))
      await triggerExport()
      await triggerExport()
    },
    repair: async ({ store }) => store.inflict(() => undefined),
  },
  {
    name: 'thread crashed',
    alert: 'GrandlivreThreadCrashed',
    // The exports of the thread fail with it; full exports begin again.
    companions: ['GrandlivreInternalErrors', 'GrandlivreExportsFailing'],
    cause: async ({ service }) => void service.child.send('crash a thread'),
    repair: async () => {},
  },
  {
    name: 'connection leak',
    alert: 'GrandlivreConnectionsExhausted',
    companions: ['GrandlivreUnavailable', 'GrandlivreNotReady', 'GrandlivreAuditWaiting'],
    cause: async ({ service }) => void service.child.send('leak connections'),
    repair: async ({ service }) => void service.child.send('give connections back'),
  },
  {
    name: 'clock off',
    alert: 'GrandlivreClockOff',
    companions: [],
    cause: ({ moveClock }) => moveClock(30),
    repair: ({ moveClock }) => moveClock(0),
  },
  {
    name: 'pooler restarted',
    alert: 'GrandlivreConnectionsLost',
    companions: [],
    cause: ({ pooler }) => pooler.restart(),
    repair: async () => {},
  },
  {
    name: 'certificate expired',
    alert: 'GrandlivreCertificateExpired',
    companions: [],
    cause: ({ tls }) => tls.present(inDays(-1)),
    repair: ({ tls }) => tls.present(inDays(100)),
  },
]

const fillerOn = (disk: string): string => join(disk, 'filler')
