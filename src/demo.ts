/** `npm run demo`: the service from nothing, and what a partner gets from it. `-- --help` shows the options. */
import { Command } from 'commander'
import { runDemo } from './demo/run.ts'

// Somebody who has seen enough (head, a closed terminal) leaves no database running.
for (const out of [process.stdout, process.stderr]) out.on('error', () => {})

const program = new Command('npm run demo --')
  .description(
    'Starts the service on an embedded database, fills a folder, and exports it as a partner would.',
  )
  .option('--movements <count>', 'size of the made-up ledger, from 1,000 to 5,000,000', '100000')
  .option('--out <folder>', 'where the exported files go', 'out')
  .option('--once', 'end when the tour is over instead of serving on', false)
  .action(runDemo)

program.parseAsync().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
