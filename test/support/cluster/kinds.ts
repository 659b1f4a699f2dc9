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
  /** Another node becomes primary. */
  isFailover: boolean
  /** @returns what makes the node well again, once writes are back */
  happen(cluster: Cluster, writers: Writers, random: Random): Promise<() => Promise<void>>
}

const kill = async (cluster: Cluster) => {
  const node = await cluster.leader()
  await cluster.killMachine(node)
  return async () => cluster.startNode(node)
}

/** How long a primary stays frozen beyond its lease, whose `ttl` is 20 s, at least. */
const beyondLeaseMs = 3_000

export const kinds: Kind[] = [
  {
    name: 'machine killed, commits lost',
    isSynchronous: false,
    isFailover: true,
    happen: async (cluster, writers, random) => {
      const node = await cluster.leader()
      await cluster.holdLog(node)
      const last = writers.commits() + between(random, 15, 30)
      await until(() => writers.commits() >= last)
      await cluster.killMachine(node)
      return async () => cluster.startNode(node)
    },
  },
  { name: 'machine killed, nothing lost', isSynchronous: true, isFailover: true, happen: kill },
  {
    name: 'postmaster killed',
    isSynchronous: true,
    isFailover: false,
    happen: async (cluster) => {
      await cluster.killPostgres(await cluster.leader())
      return async () => {}
    },
  },
  {
    name: 'switchover',
    isSynchronous: true,
    isFailover: true,
    happen: async (cluster) => {
      await cluster.switchover()
      return async () => {}
    },
  },
  {
    name: 'primary frozen past its lease and woken',
    isSynchronous: true,
    isFailover: true,
    happen: async (cluster) => {
      const thaw = await cluster.freeze(await cluster.leader())
      return async () => {
        await delay(beyondLeaseMs)
        thaw()
      }
    },
  },
  {
    name: 'primary cut from etcd',
    isSynchronous: true,
    isFailover: true,
    happen: async (cluster, _, random) =>
      cluster.cutEtcd(await cluster.leader(), random() < 0.5 ? 'refused' : 'silent'),
  },
  {
    name: 'standby lost',
    isSynchronous: true,
    isFailover: false,
    happen: async (cluster) => {
      const standby = (await cluster.nodes()).find(({ isSynchronous }) => isSynchronous)!.name
      await cluster.killMachine(standby)
      return async () => cluster.startNode(standby)
    },
  },
  {
    name: 'two machines killed within a minute',
    isSynchronous: true,
    isFailover: true,
    happen: async (cluster) => {
      const restart = await kill(cluster)
      // Only a synchronous standby is promoted, so there must be one again.
      await cluster.leader()
      await restart()
      await until(async () => (await cluster.nodes()).some(({ isSynchronous }) => isSynchronous))
      return kill(cluster)
    },
  },
]
