/** What the report of an import prints. The whole reports are in import-commands.test.ts. */
import { expect, test } from 'vitest'
import { fecReport } from '../../src/commands/import/reports.ts'

test('the report of a FEC writes a count at the end of a sentence without thousands separators', () => {
  const findings = {
    renamedColumns: [],
    dayColumns: [],
    quotedLines: 0,
    groupedAmounts: 0,
    trailingMinuses: 0,
  }
  const imported = {
    ...{ findings, period: { start: '2023-01-01', end: '2023-12-31' }, debit: 0n, credit: 0n },
    ...{ letteredLines: { complete: 0, partial: 0 }, auxiliaryLines: new Map(), renumberedAccounts: [] },
    ...{ filedColumns: [], earlierImports: [], movements: 2, entries: 1, accounts: 1, journals: 1 },
    ...{ entriesWithoutValidDate: 0, mixedCurrencyEntries: 0, unknownPaymentLines: 0 },
    ...{ unbalancedEntries: 1234, movedOpeningLines: 5678 },
  }
  const lines = fecReport(imported as never, 1, { host: 'localhost', port: 1 } as never)
  expect(lines).toContain('Entries that do not balance on their own, as in the file: 1234')
  expect(lines).toContain('Opening lines from before 2023-01-01, dated on that day: 5678')
})
