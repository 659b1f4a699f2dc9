/**
 * Numbers everything that was committed before, ten thousand events at a time. Each part is a transaction of its own: the lock of
 * the subscription, for which its deliveries wait, is held for some hundredths of a second.
 */
import type { PoolClient } from 'pg'
import { latestEventId, lockSubscription, numberMore } from './numbering.sql.ts'

/** @param transact runs one transaction, in which the subscription can be seen */
export async function numberInParts(
  transact: (run: (client: PoolClient) => Promise<number>) => Promise<number>,
  subscriptionId: string,
): Promise<void> {
  let until: string | undefined
  const numberPart = async (client: PoolClient) => {
    await lockSubscription(client, subscriptionId)
    until ??= await latestEventId(client)
    return numberMore(client, subscriptionId, until)
  }
  while ((await transact(numberPart)) > 0);
}
