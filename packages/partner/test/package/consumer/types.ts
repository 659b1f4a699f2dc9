/** Compiled, never run: what the types of the package promise a partner, and what they refuse. */
import { Grandlivre, GrandlivreError, type Movement } from 'grandlivre'
import { openCopy, type Summary, syncCopy } from 'grandlivre/sync'
import { type VerifiedWebhook, verifyWebhook } from 'grandlivre/webhooks'

export async function balance(ledger: Grandlivre): Promise<number> {
  let movements = 0
  for await (const movement of ledger.movements({ exercice: '1115', lettering: 'none' }))
    movements += numberOf(movement).length
  for await (const entry of ledger.entries({ startDate: '2026-01-01', endDate: '2026-12-31' }))
    movements += entry.movements.length
  // @ts-expect-error A misspelt filter would select everything.
  ledger.movements({ exercice: '1115', class: '411' })
  // @ts-expect-error Either an exercice or a period.
  ledger.movements({ exercice: '1115', startDate: '2026-01-01', endDate: '2026-12-31' })
  return movements
}

const numberOf = ({ account }: Movement): string => account.number

export async function accounts(token: string, secret: string): Promise<string[]> {
  const ledger = new Grandlivre({ baseUrl: 'https://ledger.example.com', token, secret })
  try {
    return (await ledger.get('/mad/accounts', { query: {} })).map(({ number }) => number)
  } catch (error) {
    if (error instanceof GrandlivreError) return [error.code, error.remedy ?? '']
    throw error
  }
}

export function take(headers: Record<string, string>, body: Uint8Array): VerifiedWebhook {
  return verifyWebhook({ secret: 'glv_secret_', headers, body })
}

export async function copy(ledger: Grandlivre): Promise<Summary> {
  // @ts-expect-error A copy is opened first.
  await syncCopy({ ledger, copy: 'firm.sqlite' })
  return syncCopy({ ledger, copy: await openCopy('firm.sqlite') })
}
