/**
 * Imports a FEC into one folder and exercice, entirely or not at all, in memory that does not grow with the file.
 *
 * The file is read three times: to find its encoding (at disk speed), to check everything and collect the facts needed
 * before the first row (accounts, and which entries and letterings balance), and to load it by COPY in one transaction.
 * It is read once more if an encoding other than UTF-8 was detected, to check that encoding; and once more before the
 * checks if only the dates of its lines determine the fiscal year.
 *
 * docs/spec/imports.md states what each column becomes. One decision needs a reason: EcritureDate is the entry's date
 * and also accounted_at, since it legally means "date de comptabilisation". ValidDate is unsuitable: many programs
 * validate a whole year on one day, long after its end.
 */

import type pg from 'pg'
import {
  checkEncoding,
  detectEncoding,
  type EncodingChoice,
  type FecEncoding,
} from '../../formats/fec/encoding.ts'
import { FecProblems } from '../../formats/fec/fields.ts'
import { FecFindings, type FecLine, parseFec } from '../../formats/fec/parse.ts'
import type { Period } from '../../formats/rows.ts'
import { countingIds, IdSource } from '../ids.ts'
import { EntryWriter } from '../import/entry-writer.ts'
import { type ImportOptions, type ImportProgress, inImportTransaction } from '../import/import-transaction.ts'
import { readSource, statSource } from '../import/source-file.ts'
import { publishImport, rememberLetterings } from '../publish-import.sql.ts'
import { createFiledTables } from '../replace/replace.sql.ts'
import { replaceExercice } from '../replace/replace.ts'
import { FecEntries } from './entries.ts'
import { fileExercice, findEarlierImports } from './import-fec.sql.ts'
import { loadFecMasterData } from './master-data.ts'
import { fiscalYear, LineDays } from './survey/fiscal-year.ts'
import { FecSurvey } from './survey/survey.ts'
import { findOrCreateFolder, type NamedFolder, nameFolder, prepareExercice } from './target.ts'

/**
 * The file is read more than once. Without `folderId`, the folder is the one with the same reference, and is created if
 * there is none. The reference is the SIREN, else the digits in the file's name, else `name`.
 */
export interface FecImportOptions extends ImportOptions<FecImported> {
  /** 9 or 14 digits. Default: taken from the file's name. */
  siren?: string | undefined
  /** Fiscal year, `YYYY-MM-DD`. Default: from the file's name, else from the dates of its lines. */
  start?: string | undefined
  end?: string | undefined
  /** Default: detected. */
  encoding?: FecEncoding | undefined
  /**
   * Whether entries without a validation date await validation. Otherwise they count as validated on their own date.
   */
  drafts?: boolean
}

export type FecImported = Awaited<ReturnType<typeof load>> & {
  period: Period
  /** Whether the period was inferred from the dates of the lines. */
  isPeriodInferred: boolean
  encoding: FecEncoding
  encodingExample: EncodingChoice['example']
}

/**
 * @param pool connects as the owner of the tables
 * @throws {FecError} problems in the file, with lines, columns and values; nothing is loaded
 * @throws {Error} for unsuitable options, folders and exercices; says what to do; nothing is loaded
 */
export async function importFec(pool: pg.Pool, options: FecImportOptions): Promise<FecImported> {
  const { file, onProgress } = options
  const named = nameFolder(file, options)
  const knownPeriod = fiscalYear(named.end, options)
  const { mtimeMs } = await statSource(file)
  const { encoding, example: encodingExample } = await encodingOf(options)
  const problems = new FecProblems()
  /**
   * @throws {Error} if the file was modified since the import began, because earlier passes may have read other content
   */
  async function* read(step: ImportProgress['step'], findings?: FecFindings): AsyncGenerator<FecLine[]> {
    let lines = 0
    const bytes = readSource(file, (read) => onProgress?.({ step, ...read, lines }))
    for await (const batch of parseFec(bytes, encoding, problems, findings)) {
      if ((await statSource(file)).mtimeMs !== mtimeMs) throw new Error(fileChanged)
      lines += batch.length
      yield batch
    }
  }
  const period = knownPeriod ?? (await fiscalYearOf(read('dating')))
  const survey = new FecSurvey(period, problems)
  for await (const lines of read('checking')) for (const line of lines) survey.add(line)
  survey.end()

  const isPeriodInferred = knownPeriod === undefined
  return inImportTransaction(pool, options, async (client) => {
    const findings = new FecFindings()
    const loaded = await load(client, options, survey, named, findings, read('loading', findings))
    return { ...loaded, encoding, encodingExample, period, isPeriodInferred }
  })
}

/** Loads the surveyed file into its folder and exercice, in the caller's transaction. */
async function load(
  client: pg.ClientBase,
  { replace = false, drafts = false }: { replace?: boolean; drafts?: boolean },
  survey: FecSurvey,
  named: NamedFolder,
  findings: FecFindings,
  batches: AsyncIterable<FecLine[]>,
) {
  const ids = new IdSource(client)
  const folder = await findOrCreateFolder(client, ids, named)
  const { schemaId, folderId, currency, created: folderCreated } = folder
  const { exerciceId, isNew, isReplaced } = await prepareExercice(client, ids, folder, survey.period, replace)
  const masterData = await loadFecMasterData(client, ids, folder, survey)
  if (isReplaced) {
    await rememberLetterings(client, folder, exerciceId)
    await createFiledTables(client)
  }
  // In the tables of a replacement, ids count from 1.
  const writer = new EntryWriter(client, {
    key: folder,
    ids: isReplaced ? countingIds() : ids,
    isCompared: isReplaced,
    isNumbered: false,
  })
  const entries = new FecEntries({ survey, writer, masterData, exerciceId, currency, findings, drafts })
  await entries.load(batches)
  const { filled, ...counts } = writer.counts
  if (counts.movements !== survey.lines || counts.debit !== survey.debit || counts.credit !== survey.credit)
    throw new Error(fileChanged)
  const replacement = isReplaced
    ? await replaceExercice(client, { schemaId, folderId, exerciceId }, survey.lines)
    : undefined
  const { isScattered } = replacement ?? entries.counts
  const { columnsBeyondStandard: filedColumns } = findings
  await fileExercice(client, folder, exerciceId, { columns: filedColumns, isScattered })
  await publishImport(client, {
    schemaId,
    folderId,
    folderCreated,
    replaced: isReplaced,
    deleted: [],
    created: isNew ? [exerciceId] : [],
    filled: isReplaced ? [] : [exerciceId],
    changed: isReplaced ? exerciceId : undefined,
  })
  return {
    ...{ ...folder, exerciceId, ...counts, ...entries.counts, isScattered },
    accounts: survey.accounts.size,
    journals: survey.journals.size,
    renumberedAccounts: masterData.renumberedAccounts,
    auxiliaryLines: survey.auxiliaryLines,
    /** Columns beyond the 18 of the standard, in the order of the file. */
    filedColumns,
    /** Counts of values that were read in another form than the standard's. */
    findings,
    /** Counts of the rows that were written, if the exercice held a ledger before. */
    replacement,
    /** Exercices of the folder that were imported by an earlier version, which kept less. */
    earlierImports: await findEarlierImports(client, folder),
  }
}

async function encodingOf({ file, encoding }: FecImportOptions): Promise<EncodingChoice> {
  const choice = encoding === undefined ? await detectEncoding(readSource(file)) : { encoding }
  // The detected encoding may lack some bytes of the file. UTF-8 is detected in spite of invalid bytes.
  if (encoding !== undefined || choice.encoding !== 'utf-8')
    await checkEncoding(readSource(file), choice.encoding, encoding !== undefined)
  return choice
}

async function fiscalYearOf(batches: AsyncIterable<FecLine[]>): Promise<Period> {
  const days = new LineDays()
  for await (const lines of batches) for (const line of lines) days.add(line)
  return days.fiscalYear()
}

const fileChanged = 'The file changed while it was imported: nothing was loaded, import it again'
