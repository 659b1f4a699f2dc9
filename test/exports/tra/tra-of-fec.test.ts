/** The TRA file of an imported FEC: third parties belong to the collective accounts that their file named. */
import type pg from 'pg'
import { expect, test } from 'vitest'
import { createPool } from '../../../src/db/pool.ts'
import { checkTra } from '../../../src/formats/tra/check/check.ts'
import { importFec } from '../../../src/ledger/fec/import-fec.ts'
import { fixturePath } from '../../support/fixtures/fixture-files.ts'
import { traBytes } from '../../support/fixtures/rendered-file.ts'
import { forEachTest } from '../../support/for-tests.ts'
import { setImportStage } from '../../support/imports/import-stage.ts'
import { type FecRow, ledger } from '../../support/ledgers/fec-file.ts'
import { plainTra } from '../../support/plain/plain-tra.ts'

const stage = forEachTest(setImportStage)

async function* once(bytes: Buffer) {
  yield bytes
}

interface TraLines {
  /** CODE, LIBELLE and COLLECTIF of each third party. */
  parties: string[][]
  /** CODE, LIBELLE and NATURE of each collective account. */
  collectives: string[][]
  /** GENERAL and AUXILIAIRE of each entry line. */
  entries: string[][]
}

/** The lines of the folder's file, after a comparison with SQL and a check without problems. */
async function linesOf(folder: { schemaId: string; folderId: string }): Promise<TraLines> {
  const service: pg.Pool = createPool(stage.database.serviceUrl, { max: 2, applicationName: 'test' })
  try {
    const bytes = await traBytes(service, folder)
    const { problems } = await checkTra(once(bytes))
    expect(problems).toEqual([])
    const lines = bytes.toString('latin1').split('\r\n').slice(0, -1)
    const entries = lines.filter((line) => !line.startsWith('***'))
    expect(entries).toEqual((await plainTra(stage.owner, folder, {})).entries)
    const cut = (line: string, ...columns: [number, number][]) =>
      columns.map(([at, length]) => line.slice(at - 1, at - 1 + length).trim())
    const records = (name: string) => lines.filter((line) => line.startsWith(`***${name}`))
    return {
      parties: records('CAE').map((line) => cut(line, [7, 17], [24, 35], [63, 17])),
      collectives: records('CGN')
        .map((line) => cut(line, [7, 17], [24, 35], [59, 3]))
        .filter(([, , nature]) => /^CO/.test(nature!)),
      entries: entries.map((line) => cut(line, [14, 17], [32, 17])),
    }
  } finally {
    await service.end()
  }
}

test('two collective accounts of one client become two third parties, each below its own account', async () => {
  const file = fixturePath('fec/auxiliaries-everywhere.txt')
  const imported = await importFec(stage.owner, { file, name: 'Acme', end: '2023-12-31' })
  const { parties, collectives, entries } = await linesOf(imported)
  expect(parties.toSorted()).toEqual([
    ['40171', 'Acme', '401000'],
    ['411100C1', 'Client Un bis', '411100'],
    ['411700C1', 'Client Un', '411700'],
    ['411C1', 'Client Un', '411100'],
    ['421DUPRE', 'Dupré Zoé', '421000'],
  ])
  expect(collectives.toSorted()).toEqual([
    ['401000', 'Fournisseurs', 'COF'],
    ['411100', 'Clients', 'COC'],
    ['411700', 'Retenues de garantie', 'COC'],
    ['421000', 'Personnel', 'COS'],
  ])
  expect(entries).toContainEqual(['411700', '411700C1'])
  expect(entries).toContainEqual(['404000', ''])
})

test('lines on a collective account itself go to a third party of that number; a number that does not fit becomes the account of its root', async () => {
  const sale = (number: string, CompteNum: string, CompAuxNum: string): FecRow[] =>
    [11, 12, 13].map((at) => ({
      ...ledger[at]!,
      EcritureNum: number,
      EcritureLet: '',
      ...(at === 11 && { CompteNum, CompteLib: `Clients ${CompteNum}`, CompAuxNum, CompAuxLib: CompAuxNum }),
    }))
  const long = 'CLIENT-1234567890'
  const imported = await stage.importRows([
    ...sale('1', '411100', long),
    ...sale('2', '411100', ''),
    ...sale('3', '411000', ''),
    ...sale('4', '41180000000000000001', 'Z'),
  ])
  const { parties, collectives } = await linesOf(imported)
  // A collective account belongs to itself. A number of 20 digits fits no column, so the account of the root takes its place.
  expect(parties.toSorted()).toEqual([
    ['411000', 'Clients 411000', '411000'],
    ['411100', 'Clients 411100', '411100'],
    ['411Z', 'Z', '411000'],
    [long, long, '411100'],
  ])
  expect(collectives.map(([number]) => number).toSorted()).toEqual(['411000', '411100'])
})
