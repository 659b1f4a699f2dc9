/** Invalid TRA files are refused with line, column, field and value. Nothing is loaded. */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { readFixture } from '../../support/fixtures/fixture-files.ts'
import { forTests } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import {
  entryWriter,
  purchase,
  recordAt,
  smallEntries,
  smallParameters,
} from '../../support/imports/small-tra.ts'

const small = () => [...smallParameters(), ...smallEntries()]
const bytesOf = (lines: readonly Buffer[]) => Buffer.concat(lines)

const stage = forTests(setImportStage)

/** The small file with columns of one line overwritten. @param line from 1 @param at from 1 */
function written(line: number, at: number, text: string): Buffer {
  const lines = small()
  const changed = Buffer.from(lines[line - 1]!)
  changed.write(text, at - 1, 'latin1')
  return bytesOf(lines.with(line - 1, changed))
}

const firstEntry = smallParameters().length + 1
/** The number of the first line of a record, from 1. */
const lineOf = (record: string) => recordAt(record) + 1

const refusals: Record<string, [file: () => Uint8Array, message: string]> = {
  'an empty file': [() => Buffer.alloc(0), 'line 1, column 1: the file is empty'],
  'a FEC': [() => readFixture('ledger.fec.txt'), 'line 1, column 1 "JournalCode|'],
  'a MAD file': [() => readFixture('ledger.mad.json'), 'line 1, column 1 "{"metadata"'],
  'a file cut within a line': [() => bytesOf(small()).subarray(0, -300), `line ${firstEntry + 6}, column `],
  'a cut compressed file': [
    () => gzipSync(bytesOf(small())).subarray(0, -20),
    'is not a whole gzip file: unexpected end of file',
  ],
  'a file of two zstd frames, the second damaged': [
    () => {
      const [parameters, lines] = [smallParameters(), smallEntries()].map((part) =>
        zstdCompressSync(bytesOf(part)),
      )
      return Buffer.concat([parameters!, lines!.fill(0, 0, 1)])
    },
    'is not a whole zstd file: its last ',
  ],
  'an unknown record': [
    () => bytesOf([...smallParameters(), Buffer.from('***XYZ\r\n')]),
    `line ${firstEntry}, column 4 "XYZ": not a record of TRA files of version 011`,
  ],
  'an invalid amount': [
    () => written(firstEntry, 131, '            100O,00 '),
    `line ${firstEntry}, column 131, ENTRY.MONTANT1 "100O,00": a right-aligned number is expected`,
  ],
  'an amount beyond the database': [
    () => written(firstEntry, 131, '99999999999999999,99'),
    `line ${firstEntry}, column 131, ENTRY.MONTANT1 "99999999999999999,99": an amount up to`,
  ],
  'an amount without euro': [
    () => written(firstEntry, 173, 'D--'),
    `line ${firstEntry}, column 173, ENTRY.CODEMONTANT "D--": an amount in euro is expected`,
  ],
  'an invalid day': [
    () => written(firstEntry, 4, '30022024'),
    `line ${firstEntry}, column 4, ENTRY.DATECOMPTABLE "30022024": a day written DDMMYYYY is expected`,
  ],
  'a day outside all exercices': [
    () => written(firstEntry, 4, '15032019'),
    `line ${firstEntry}, column 4, ENTRY.DATECOMPTABLE "15032019": no EXO record of the file contains this day`,
  ],
  'an account that no record defines': [
    () => written(firstEntry, 14, '999999'),
    `line ${firstEntry}, column 14, ENTRY.GENERAL "999999": `,
  ],
  'lines of one entry, one of them a draft': [
    () => written(firstEntry + 3, 151, 'S'),
    `line ${firstEntry + 3}, column 151, ENTRY.TYPE ECRITURE "S": the first line of the entry has "N"`,
  ],
  'a file of balances': [
    () => written(1, 9, 'BAL'),
    'line 1, column 9, HEADER.TYPE FICHIER "BAL": DOS or JRL',
  ],
  'books in another currency': [
    () => written(5, 7, 'USD'),
    'line 5, column 7, PS5.DEVISE "USD": EUR is expected',
  ],
  'an account code without a digit or letter': [
    () => written(lineOf('CGN'), 7, '--------'),
    'CGN.CODE "--------": a code with a digit or letter is expected',
  ],
  'a VAT rate of three decimals': [
    () => written(lineOf('TVA'), 58, '    20,123'),
    `line ${lineOf('TVA')}, column 58, TVA.TAUXVENTE "20,123": at most two decimals`,
  ],
  'a capital beyond the database': [
    () => written(2, 478, '99999999999999999,99'),
    'line 2, column 478, PS1.CAPITAL "99999999999999999,99": at most two decimals, and at most 92233720368547758,07,',
  ],
  'a closed exercice without a closing date': [
    () => written(lineOf('EXO'), 70, '31022024'),
    `line ${lineOf('EXO')}, column 70, EXO.DATECREATION "31022024": a day written DDMMYYYY is expected`,
  ],
  'a rate of seven decimals': [
    () =>
      bytesOf([
        ...small(),
        entryWriter({ ...purchase, number: '3', debit: 0n })
          .key('DEVISE', 'USD')
          .number('TAUXDEV', '0,9234001')
          .text('CODEMONTANT', 'DE-')
          .amount('MONTANT2', 0n)
          .line(),
      ]),
    `line ${firstEntry + 7}, column 163, ENTRY.TAUXDEV "0,9234001": a rate with at most six decimals`,
  ],
  'a SIRET of letters': [() => written(2, 391, 'SIRET'), 'line 2, column 391, PS1.SIRET'],
}

describe('a file is refused', () => {
  test.each(Object.entries(refusals))('%s', (_, [file, message]) =>
    stage.expectRefused(() => stage.importTra(file()), message),
  )

  test('with its first twenty problems and the number of all', async () => {
    const bad = smallEntries().map((line) => {
      const changed = Buffer.from(line)
      changed.write('x', 139, 'latin1')
      return changed
    })
    const error: Error = await stage
      .importTra(bytesOf([...smallParameters(), ...bad, ...bad, ...bad, ...bad]))
      .catch((reason) => reason)
    expect(error.message).toMatch(/^The file was not imported: \d\d problems, the first 20\n {2}line /)
    expect(error.message.split('\n').length).toBe(21)
  })
})

test('a folder kept in a currency other than the euro is refused', async () => {
  const { folderId } = await stage.importTra(bytesOf(small()))
  await stage.owner.query(`update grandlivre.folders set currency = 'USD' where id = $1`, [folderId])
  await stage.expectRefused(
    () => stage.importTra(bytesOf(small()), { folderId, replace: true }),
    `A TRA file holds books in euro, and folder ${folderId} (Société Bérénice) is kept in USD`,
  )
})
