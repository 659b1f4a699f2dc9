/** How reading the movements of a selection is split into statements. Their results are tested over HTTP. */
import { expect, test } from 'vitest'
import {
  copyEntries,
  copyMovements,
  entrySegments,
  type ResolvedSelection,
} from '../../src/exports/read/movements.sql.ts'
import { wholeFolder } from '../../src/exports/selection.ts'
import { entryColumns } from '../../src/formats/mad/entry.ts'
import { movementColumns } from '../../src/formats/mad/movement.ts'

const resolved: ResolvedSelection = {
  selection: {
    ...wholeFolder({ schemaId: '1', folderId: '2' }, 'Europe/Paris'),
    period: { start: '2025-07-01', end: '2026-06-30', dateFilter: 'document' },
    draft: false,
  },
  exerciceIds: ['11', '12'],
  accountIds: undefined,
  after: undefined,
  segments: entrySegments([
    { exerciceId: '12', least: '600', greatest: '900', dense: false },
    { exerciceId: '11', least: '100', greatest: '500', dense: true },
  ]),
}

test('a period over two fiscal years is read one year after the other, each in the order of its key', () => {
  const statements = copyMovements(resolved, movementColumns)
  expect(statements).toHaveLength(2)
  expect(statements[0]).toMatch(/m\.entry_id between 100 and 500\b.*m\.exercice_id = 11\b/s)
  expect(statements[1]).toMatch(/m\.entry_id between 600 and 900\b.*m\.exercice_id = 12\b/s)
})

test('entries are joined only if the selection has few entries of the segment', () => {
  const [dense, sparse] = copyMovements(resolved, movementColumns)
  expect(dense).not.toContain('join entries')
  expect(sparse).toMatch(/join entries.*e\.exercice_id = 12\b.*e\.date between/s)
})

test('entries of both fiscal years are read at once, as their key is their id', () => {
  expect(copyEntries(resolved, entryColumns)).toMatch(/e\.id between 100 and 900\b.*any \('\{11,12\}'/s)
})
