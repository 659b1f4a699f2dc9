/** How a command without a terminal reports waits that the service asks for. */
import { expect, test } from 'vitest'
import { startBusyService } from '../support/cli/busy-service.ts'
import { logIn } from '../support/cli/command-line.ts'

test('without a terminal, a login that has to wait says so every ten seconds', async () => {
  const busy = await startBusyService('Busy', 11)
  const { code, error } = await logIn({}, busy.env)
  busy.close()
  expect([code, error]).toEqual([4, expect.stringMatching(/\nWaiting 1\d\.\d s: Busy\nBusy \(ERR-/)])
}, 30_000)
