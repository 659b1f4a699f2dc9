/**
 * Other ways of making the same answer, each a program of its own. In its environment it finds DATABASE_URL, SCHEMA_ID,
 * FOLDER_ID and EXERCICE_ID. It listens, prints its address as its first line, and answers GET there with the year: 200,
 * in chunks. It ends when its standard input does. peer.ts is that for programs in TypeScript; another language brings
 * a folder and a line here.
 */
import { script } from '../own-process.ts'

export interface Peer {
  name: string
  command: string[]
  /** It puts blanks between tokens and a movement on each line, so content is compared after parsing. */
  hasBlanks?: boolean
}

export const peers: Peer[] = [
  { name: 'object per row, JSON.stringify', command: script('./peers/object-per-row.ts') },
  { name: 'JSON made by the database', command: script('./peers/database-json.ts'), hasBlanks: true },
]
