/**
 * Imports a FEC into one folder and exercice, entirely or not at all, in memory that does not grow with the file.
 *
 * The file is read three times: for its encoding (at disk speed), to check everything and collect what must be known
 * before the first row (accounts, and which entries and letterings balance), and to load it by COPY in one transaction.
 * If only the dates of its lines determine the fiscal year, it is read once more before the checks.
 *
 * Mapping of columns (see survey/accounts.ts, survey/entries.ts, survey/journals.ts for the first ones):
 * - EcritureDate is the entry's date and, since it legally means "date de comptabilisation", also accounted_at.
 *   ValidDate would not do: many programs validate a whole year on one day long after its end.
 * - ValidDate is validated_at. A FEC holds validated entries only, so EcritureDate replaces it where it is empty.
 * - PieceRef is the movement's invoice number, EcritureLib its description, EcritureLet its lettering.
 * - Montantdevise and Idevise give the entry's currency and rate if they name a currency other than the folder's.
 * - ModeRglt is the movement's payment if it is one of the six known modes.
 * - A line of an opening journal dated before the fiscal year moves to its first day; its own date becomes the
 *   movement's free number.
 * - PieceDate, DateLet, DateRglt, NatOp and IdClient are checked where they are dates, and not stored: the ledger has
 *   no column for them.
 * - created_at is the time of the import.
 */

import { createReadStream } from 'node:fs'
import type pg from 'pg'
import { inTransaction } from '../../db/pool.ts'
import { detectEncoding, type FecEncoding } from '../../formats/fec/encoding.ts'
import { type FecLine, parseFec } from '../../formats/fec/parse.ts'
import { FecProblems } from '../../formats/fec/problem.ts'
import type { Period } from '../../formats/rows.ts'
import { IdSource } from '../ids.ts'
import { publishImport } from '../publish-import.ts'
import { fileSize } from '../source-file.ts'
import { analyzeLedger } from './import-fec.sql.ts'
import { loadDimensions } from './load-dimensions.ts'
import { EntryLoader, type LoadCounts } from './load-entries.ts'
import { type FecFileName, readFileName } from './survey/file-name.ts'
import { fiscalYear, LineDays } from './survey/fiscal-year.ts'
import { FecSurvey } from './survey/survey.ts'
import { findOrCreateFolder, prepareExercice, type RequestedFolder } from './target.ts'

export interface FecImportOptions {
  /** Path of a regular file: it is read more than once. */
  file: string
  /**
   * Decimal digits. If absent: the folder with the same reference (SIREN, else the digits in the file's name, else
   * `name`), created if there is none.
   */
  folderId?: string
  /** Name of a new folder. Default: the file's name. */
  name?: string
  /** 9 or 14 digits. Default: taken from the file's name. */
  siren?: string
  /** Fiscal year, `YYYY-MM-DD`. Default: from the file's name, else from the dates of its lines. */
  start?: string
  end?: string
  /** Replaces the entries of the exercice. */
  replace?: boolean
  onProgress?: (progress: FecProgress) => void
  /** Called after the commit. Only statistics follow, which may fail or be interrupted without harm. */
  onLoaded?: (imported: FecImported) => void
}

export interface FecProgress {
  /** `dating` only if the dates of the lines determine the fiscal year. */
  step: 'dating' | 'checking' | 'loading'
  bytes: number
  bytesTotal: number
  lines: number
}

export interface FecImported extends LoadCounts {
  schemaId: string
  firmId: string
  folderId: string
  folderName: string
  folderCreated: boolean
  exerciceId: string
  period: Period
  /** Whether the period was inferred from the dates of the lines. */
  isPeriodInferred: boolean
  encoding: FecEncoding
  accounts: number
  journals: number
}

/**
 * @param pool connects as the owner of the tables
 * @throws {FecError} problems in the file, with lines, columns and values; nothing is loaded
 * @throws {Error} for unsuitable options, folders and exercices; says what to do; nothing is loaded
 */
export async function importFec(pool: pg.Pool, options: FecImportOptions): Promise<FecImported> {
  const name = readFileName(options.file)
  const knownPeriod = fiscalYear(name.end, options)
  const requested = requestedFolder(name, options)
  const bytesTotal = await fileSize(options.file)

  const encoding = await detectEncoding(createReadStream(options.file, { highWaterMark: readBytes }))
  const problems = new FecProblems()
  const read = (step: FecProgress['step']) => readLines(options, encoding, step, bytesTotal, problems)
  const period = knownPeriod ?? (await fiscalYearOf(read('dating')))
  const survey = new FecSurvey(period, problems)
  for await (const lines of read('checking')) for (const line of lines) survey.add(line)
  survey.end()

  const imported = await inTransaction(pool, async (client) => {
    const ids = new IdSource(client)
    const folder = await findOrCreateFolder(client, ids, requested)
    const prepared = await prepareExercice(client, ids, folder, period, options.replace ?? false)
    const { exerciceId } = prepared
    const dimensions = await loadDimensions(client, ids, folder, survey)
    const createdAt = new Date().toISOString()
    const { schemaId, folderId, currency } = folder
    const target = { schemaId, folderId, currency, exerciceId, createdAt, ...dimensions }
    const loader = new EntryLoader(client, ids, survey, target)
    for await (const lines of read('loading')) await loader.add(lines)
    const counts = await loader.end()
    if (counts.lines !== survey.lines || counts.debit !== survey.debit || counts.credit !== survey.credit)
      throw new Error('The file changed while it was imported: nothing was loaded, import it again')
    const { firmId, name: folderName, created: folderCreated } = folder
    await publishImport(client, {
      schemaId,
      folderId,
      folderCreated,
      replaced: prepared.isReplaced,
      deleted: [],
      created: prepared.isNew ? [exerciceId] : [],
      filled: [exerciceId],
    })
    const whole = { schemaId, firmId, folderId, folderName, folderCreated, exerciceId, period, encoding }
    const isPeriodInferred = knownPeriod === undefined
    return {
      ...whole,
      isPeriodInferred,
      ...counts,
      accounts: survey.accounts.size,
      journals: survey.journals.size,
    }
  })
  options.onLoaded?.(imported)
  await analyzeLedger(pool)
  return imported
}

function requestedFolder(name: FecFileName, options: FecImportOptions): RequestedFolder {
  const siren = options.siren ?? name.siren
  if (siren !== undefined && !/^(\d{9}|\d{14})$/.test(siren))
    throw new Error(`--siren must be 9 digits (or 14, a SIRET), not "${siren}"`)
  if (options.folderId !== undefined && options.name !== undefined)
    throw new Error('--folder names an existing folder, --name a new one: give only one of them')
  // A SIRET names an establishment of the company whose SIREN it begins with, and a FEC belongs to a company.
  const identity = siren?.slice(0, 9) ?? name.reference ?? options.name
  return {
    id: options.folderId,
    reference: identity ?? name.stem,
    isIdentified: identity !== undefined,
    name: options.name,
    fallbackName: name.stem,
    siren,
  }
}

async function fiscalYearOf(batches: AsyncIterable<FecLine[]>): Promise<Period> {
  const days = new LineDays()
  for await (const lines of batches) for (const line of lines) days.add(line)
  return days.fiscalYear()
}

/** Bytes per read, which also sets the size of the batches. */
const readBytes = 256 * 1024

async function* readLines(
  options: FecImportOptions,
  encoding: FecEncoding,
  step: FecProgress['step'],
  bytesTotal: number,
  problems: FecProblems,
): AsyncGenerator<FecLine[]> {
  const file = createReadStream(options.file, { highWaterMark: readBytes })
  let lines = 0
  for await (const batch of parseFec(file, encoding, problems)) {
    yield batch
    lines += batch.length
    options.onProgress?.({ step, bytes: file.bytesRead, bytesTotal, lines })
  }
}
