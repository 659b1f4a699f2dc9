import { expect, test } from 'vitest'
import { nextSteps } from '../../src/commands/terminal/next-steps.ts'
import { readConfig } from '../../src/config.ts'

test.each<[NodeJS.ProcessEnv, string]>([
  [{}, 'http://127.0.0.1:8080'],
  [{ PORT: '9000' }, 'http://127.0.0.1:9000'],
  [{ PORT: '0' }, 'http://127.0.0.1:<port>'],
  [{ HOST: '0.0.0.0' }, 'http://localhost:8080'],
  [{ HOST: '::1' }, 'http://[::1]:8080'],
  [{ PUBLIC_URL: 'https://ledger.example.com', PORT: '9000' }, 'https://ledger.example.com'],
])('with %j the suggested next steps use the address %s', (settings, address) => {
  expect(nextSteps(readConfig(settings), '1002', '1115').join('\n')).toContain(
    `curl "${address}/api/v1/mad/movements?version=1.0.0&idExercice=1115"`,
  )
})
