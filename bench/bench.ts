/** `npm run bench`: the benches. README.md says what each measures and how to read it. */
import { type Program, runNamed } from '../test/programs.ts'

export const benches = {
  year: {
    about: 'exports of a year and of folders, compared with COPY: 10 minutes',
    node: ['bench/year/movements.ts'],
  },
  small: {
    about: 'exports of one small folder, one after the other: 2 minutes',
    node: ['bench/small/small.ts'],
  },
  folders: {
    about: 'thousands of small folders, pulled by 32 clients: 8 minutes',
    node: ['bench/small/folders.ts'],
  },
  memory: {
    about: 'peak memory of 1, 2 and 8 exports at once: 10 minutes',
    node: ['bench/memory/memory.ts'],
  },
  changes: {
    about: 'the log of changes, deltas, blocks, waiting requests: 10 minutes',
    node: ['bench/changes/changes.ts'],
  },
  firm: {
    about: 'copies of a firm of 300 folders, and of one large ledger: 5 minutes',
    node: ['bench/firm/firm.ts'],
  },
  python: {
    about: 'from pip install to a proven copy in a DataFrame: 10 minutes',
    node: ['bench/firm/python.ts'],
  },
  webhooks: { about: 'delays and throughput of deliveries', node: ['bench/webhooks/delays.ts'] },
  fairness: {
    about: 'how receivers of one third party delay those of another',
    node: ['bench/webhooks/fairness.ts'],
  },
  pooler: {
    about: 'processor time of an export through PgBouncer and directly',
    node: ['bench/pooler/pooler.ts'],
  },
  telemetry: { about: 'what metrics and traces cost: 4 minutes', node: ['bench/telemetry/telemetry.ts'] },
  newcomer: {
    about: 'what the README makes you wait for in a fresh clone: 1 minute',
    node: ['bench/newcomer/newcomer.ts'],
  },
} satisfies Record<string, Program>

if (import.meta.main) runNamed('bench', benches)
