/** The kinds of failovers: what happens to a cluster in each. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../../../packages/sample/src/made-up/random.ts'
import { until } from '../until.ts'
import type { Cluster } from './cluster.ts'
import type { Writers } from './writers.ts'

export interface Kind {
  name: string
  /** Whether no acknowledged commit may be lost. */
  isSynchronous: boolean
  /** Called before one of the followers falls asleep. */
  prepare?(cluster: Cluster, primary: string, writers: Writers, random: Random): Promise<void>
  happen(cluster: Cluster, primary: string, random: Random): Promise<Happened>
}

interface Happened {
  /** The node that another one replaces as primary. */
  replaced?: string
  /** Repairs the node, once writes are possible again. */
  mend(): Promise<void>
}

const kill = async (cluster: Cluster, primary: string) => {
  await cluster.killMachine(primary)
  return { replaced: primary, mend: async () => cluster.startNode(primary) }
}

/** The least time for which a primary stays frozen beyond its lease, whose `ttl` is 20 s. */
const beyondLeaseMs = 3_000

export const kinds: Kind[] = [
  {
    name: 'machine killed, commits lost',
    isSynchronous: false,
    prepare: async (cluster, primary, writers, random) => {
      await cluster.holdLog(primary)
      const last = writers.commits() + random.integer(15, 30)
      await until(() => writers.commits() >= last)
    },
    happen: kill,
  },
  { name: 'machine killed, nothing lost', isSynchronous: true, happen: kill },
  {
    name: 'postmaster killed',
    isSynchronous: true,
    happen: async (cluster, primary) => {
      await cluster.killPostgres(primary)
      return { mend: async () => {} }
    },
  },
  {
    name: 'switchover',
    isSynchronous: true,
    happen: async (cluster, primary) => {
      await cluster.switchover()
      return { replaced: primary, mend: async () => {} }
    },
  },
  {
    name: 'primary frozen past its lease and woken',
    isSynchronous: true,
    happen: async (cluster, primary) => {
      const thaw = await cluster.freeze(primary)
      const mend = async () => {
        await delay(beyondLeaseMs)
        thaw()
      }
      return { replaced: primary, mend }
    },
  },
  {
    name: 'primary cut from etcd',
    isSynchronous: true,
    happen: async (cluster, primary, random) => {
      const mend = await cluster.cutEtcd(primary, random.fraction() < 0.5 ? 'refused' : 'silent')
      return { replaced: primary, mend }
    },
  },
  {
    name: 'standby lost',
    isSynchronous: true,
    happen: async (cluster) => {
      const standby = (await cluster.nodes()).find(({ isSynchronous }) => isSynchronous)!.name
      await cluster.killMachine(standby)
      return { mend: async () => cluster.startNode(standby) }
    },
  },
  {
    name: 'two machines killed within a minute',
    isSynchronous: true,
    happen: async (cluster, primary) => {
      const first = await kill(cluster, primary)
      // Only a synchronous standby is promoted, so the next primary must have one.
      await until(async () => (await cluster.leader()) !== first.replaced)
      await first.mend()
      await until(async () => (await cluster.nodes()).some(({ isSynchronous }) => isSynchronous))
      return kill(cluster, await cluster.leader())
    },
  },
]
