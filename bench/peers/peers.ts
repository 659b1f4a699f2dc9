/**
 * Other ways of producing the same response, each a separate program. Its environment has DATABASE_URL,
 * SCHEMA_ID, FOLDER_ID and EXERCICE_ID. It listens, prints its address as its first line, and answers GET
 * there with the year: 200, in chunks. It ends when its standard input does. peer.ts does that for programs
 * in TypeScript; another language needs a folder and a line here.
 */
import { script } from '../own-process.ts'
import { compileGo, compileRust, goProgram, rustProgram } from './compile.ts'
import { installPython, pythonProgram } from './python/install.ts'

export interface Peer {
  name: string
  command: string[]
  /**
   * It puts spaces between tokens and each movement on its own line, so content is compared after parsing.
   */
  hasBlanks?: boolean
  /**
   * Builds or installs it below .cache/bench; what an earlier run has made stays.
   * @returns why that is not possible on this machine, so the bench leaves it out; undefined if it can start
   */
  build?: () => Promise<string | undefined>
}

export const peers: Peer[] = [
  { name: 'object per row, JSON.stringify', command: script('./peers/object-per-row.ts') },
  { name: 'JSON made by the database', command: script('./peers/database-json.ts'), hasBlanks: true },
  { name: 'Rust: tokio-postgres, serde_json', command: [rustProgram], build: compileRust },
  { name: 'Go: pgx, sonic', command: [goProgram], build: compileGo },
  {
    name: 'Python: psycopg, orjson',
    command: pythonProgram('movements_app.py'),
    build: () => installPython('requirements.txt'),
  },
]
