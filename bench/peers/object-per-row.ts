/**
 * The usual way: rows joined in SQL, read through a cursor, one object per row, JSON.stringify.
 *
 * Done as well as this way allows: dates and times come as text or number, which avoids a Date per column;
 * rows come a thousand at a time; text goes out in pieces of 64 KB instead of a write per row; sections are
 * looked up in a map.
 */

import type pg from 'pg'
import QueryStream from 'pg-query-stream'
import { type JournalType, journalTypeLabels } from '../../src/formats/items/journal.ts'
import { paymentMode } from '../../src/formats/items/payment.ts'
import type { YearOfFolder } from '../dataset.ts'
import { listenAsPeer } from './peer.ts'
import { selectJoined, selectSections } from './year.sql.ts'

const rowsPerFetch = 1000
const charactersPerWrite = 64 * 1024

/** A row of selectJoined. Ids and amounts are digits: pg returns bigint as text. */
interface JoinedRow {
  id: string
  description: string
  dueDate: string | null
  freeNumber: string | null
  invoiceNumber: string
  debit: string
  credit: string
  attachments: Record<string, string> | null
  shares: string[] | null
  letteringState: string
  letteringCode: string | null
  entryId: string
  date: string
  entryDueDate: string | null
  currency: string
  rate: string | null
  source: string
  partnerMetadata: { partnerId: string; json: unknown } | null
  comment: string | null
  createdAt: number
  accountedAt: string
  entryAttachments: Record<string, string> | null
  journalId: string
  journalCode: string
  journalName: string
  journalType: string
  accountId: string
  accountNumber: string
  accountName: string
  paymentId: string | null
  paymentCode: string | null
  thirdPartyName: string | null
  thirdPartyCode: string | null
}

type SectionRow = Record<'id' | 'code' | 'name' | 'axisId' | 'axisCode' | 'axisName', string>

listenAsPeer((year, pool) => ReadableStream.from(render(year, pool)))

async function* render(year: YearOfFolder, pool: pg.Pool): AsyncGenerator<Uint8Array> {
  const client = await pool.connect()
  const { rows: sectionRows } = await client.query<SectionRow>(selectSections(year))
  const sections = new Map(sectionRows.map((section) => [section.id, section]))
  const rows = client.query(new QueryStream(selectJoined(year), [], { batchSize: rowsPerFetch }))
  let text = '['
  let separator = ''
  for await (const row of rows) {
    text += separator + JSON.stringify(movementOf(row, sections))
    separator = ','
    if (text.length >= charactersPerWrite) {
      yield Buffer.from(text)
      text = ''
    }
  }
  client.release()
  yield Buffer.from(`${text}]`)
}

function movementOf(row: JoinedRow, sections: Map<string, SectionRow>): object {
  const [debit, credit] = [Number(row.debit), Number(row.credit)]
  return {
    producerId: row.id,
    description: row.description,
    dueDate: row.dueDate,
    freeNumber: row.freeNumber,
    invoiceNumber: row.invoiceNumber,
    value: { credit: credit / 100, debit: debit / 100, amount: (credit - debit) / 100 },
    entry: entryOf(row),
    attachments: attachmentsOf(row.attachments),
    account: { producerId: row.accountId, number: row.accountNumber, name: row.accountName },
    payment: row.paymentCode === null ? null : { producerId: row.paymentId, ...paymentMode(row.paymentCode) },
    analytics: row.shares === null ? [] : analyticsOf(row.shares, sections),
    lettering: { state: row.letteringState, value: row.letteringCode },
  }
}

function entryOf(row: JoinedRow): object {
  return {
    producerId: row.entryId,
    date: row.date,
    dueDate: row.entryDueDate,
    currency: row.rate === null ? { code: row.currency } : { code: row.currency, rate: Number(row.rate) },
    journal: {
      producerId: row.journalId,
      customerReferenceCode: row.journalCode,
      name: row.journalName,
      type: journalTypeLabels[row.journalType as JournalType],
    },
    additionalProducerProperties: {
      source: {
        name: row.source,
        thirdParty:
          row.thirdPartyCode === null ? null : { name: row.thirdPartyName, code: row.thirdPartyCode },
      },
      partnerMetadata: row.partnerMetadata && {
        partnerId: row.partnerMetadata.partnerId,
        json: row.partnerMetadata.json,
      },
      comment: row.comment,
      createdAt: row.createdAt,
      accountedAt: row.accountedAt,
    },
    attachments: attachmentsOf(row.entryAttachments),
  }
}

function attachmentsOf(addresses: Record<string, string> | null): object {
  const files: Record<string, object> = {}
  for (const name in addresses) files[name] = { type: 'URL', value: addresses[name] }
  return files
}

/** Shares of an axis are adjacent: section id, amount, rate, and so on by threes. */
function analyticsOf(shares: string[], sections: Map<string, SectionRow>): object[] {
  const axes: { producerId: string; code: string; name: string; sections: object[] }[] = []
  for (let i = 0; i < shares.length; i += 3) {
    const { id, code, name, axisId, axisCode, axisName } = sections.get(shares[i]!)!
    let axis = axes.at(-1)
    if (axis?.producerId !== axisId) {
      axis = { producerId: axisId, code: axisCode, name: axisName, sections: [] }
      axes.push(axis)
    }
    const amount = Number(shares[i + 1]) / 100
    const rate = Number(shares[i + 2]) / 10_000
    axis!.sections.push({ producerId: id, amount, rate, code, name })
  }
  return axes
}
