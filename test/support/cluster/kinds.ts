/** What happens to a cluster, kind after kind. */
import { setTimeout as delay } from 'node:timers/promises'
import { between, type Random } from '../changes/random-changes.ts'
import { until } from '../until.ts'
import type { Cluster } from './cluster.ts'
import type { Writers } from './writers.ts'

export interface Kind {
  name: string
  /** What was acknowledged is never lost. */
  isSynchronous: boolean
  /** Before one of the followers falls asleep. */
  prepare?(cluster: Cluster, writers: Writers, random: Random): Promise<void>
  happen(cluster: Cluster, random: Random): Promise<Happened>
}

interface Happened {
  /** The node that another one replaces as primary. */
  replaced?: string
  /** Makes the node well again, once writes are back. */
  mend(): Promise<void>
}

const kill = async (cluster: Cluster) => {
  const replaced = await cluster.leader()
  await cluster.killMachine(replaced)
  return { replaced, mend: async () => cluster.startNode(replaced) }
}

/** How long a primary stays frozen beyond its lease, whose `ttl` is 20 s, at least. */
const beyondLeaseMs = 3_000

export const kinds: Kind[] = [
  {
    name: 'machine killed, commits lost',
    isSynchronous: false,
    prepare: async (cluster, writers, random) => {
      await cluster.holdLog(await cluster.leader())
      const last = writers.commits() + between(random, 15, 30)
      await until(() => writers.commits() >= last)
    },
    happen: kill,
  },
  { name: 'machine killed, nothing lost', isSynchronous: true, happen: kill },
  {
    name: 'postmaster killed',
    isSynchronous: true,
    happen: async (cluster) => {
      await cluster.killPostgres(await cluster.leader())
      return { mend: async () => {} }
    },
  },
  {
    name: 'switchover',
    isSynchronous: true,
    happen: async (cluster) => {
      const replaced = await cluster.leader()
      await cluster.switchover()
      return { replaced, mend: async () => {} }
    },
  },
  {
    name: 'primary frozen past its lease and woken',
    isSynchronous: true,
    happen: async (cluster) => {
      const replaced = await cluster.leader()
      const thaw = await cluster.freeze(replaced)
      const mend = async () => {
        await delay(beyondLeaseMs)
        thaw()
      }
      return { replaced, mend }
    },
  },
  {
    name: 'primary cut from etcd',
    isSynchronous: true,
    happen: async (cluster, random) => {
      const replaced = await cluster.leader()
      const mend = await cluster.cutEtcd(replaced, random() < 0.5 ? 'refused' : 'silent')
      return { replaced, mend }
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
    happen: async (cluster) => {
      const first = await kill(cluster)
      // Only a synchronous standby is promoted, so there must be one of the next primary.
      await until(async () => (await cluster.leader()) !== first.replaced)
      await first.mend()
      await until(async () => (await cluster.nodes()).some(({ isSynchronous }) => isSynchronous))
      return kill(cluster)
    },
  },
]
