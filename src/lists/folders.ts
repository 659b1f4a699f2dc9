import {
  countedMax,
  draftsMax,
  type FolderFacts,
  type FolderSearch,
  type LastPull,
  type ListedFirm,
  type ListedFolder,
  listFirms,
  listFolders,
  type YearFacts,
} from '../ledger/folders.sql.ts'
import { type Cell, type Facts, folderCell, type PagedList, partnerCell, type Table } from './list.ts'

const byTenant = {
  placeOf: ({ schemaId, id }: { schemaId: string; id: string }) => `${schemaId}.${id}`,
  places: /^\d{1,16}\.\d{1,16}$/,
}

export const firmList: PagedList<ListedFirm, { id?: string }> = {
  caption: 'Firms, by id',
  none: 'There is no firm.',
  columns: {
    Id: ({ id }) => ({ to: `/firms/${id}`, text: id }),
    Name: ({ name }) => ({ foreign: name, most: 60 }),
    Folders: ({ folders }) => ({ count: folders }),
    'Last change': ({ changedAt }) => ({ at: changedAt }),
    Tokens: ({ firmTokens }) => ({ count: firmTokens }),
    'Tokens of folders': ({ folderTokens }) => ({ count: folderTokens }),
    Subscriptions: ({ subscriptions }) => ({ count: subscriptions }),
    Tenant: ({ schemaId }) => schemaId,
  },
  read: listFirms,
  ...byTenant,
}

export function firmFacts(firm: ListedFirm): Facts {
  return {
    Firm: firm.id,
    Name: { foreign: firm.name },
    'SIRET or SIREN': firm.siret,
    Tenant: [firm.schemaId, ' ', { foreign: firm.schemaName }],
    Folders: { count: firm.folders },
    'Last change': { at: firm.changedAt },
    'Tokens of the firm': { count: firm.firmTokens },
    'Tokens of single folders': { count: firm.folderTokens },
    Subscriptions: { count: firm.subscriptions },
  }
}

export const folderList: PagedList<ListedFolder, FolderSearch> = {
  caption: 'Folders, by id',
  none: 'No folder has this id, name or reference.',
  columns: {
    Id: ({ id }) => folderCell(id),
    Name: ({ name }) => ({ foreign: name, most: 60 }),
    Reference: ({ reference }) => ({ foreign: reference, most: 60 }),
    Firm: ({ firmId, firmName }) => [
      { to: `/firms/${firmId}`, text: firmId },
      ' ',
      { foreign: firmName, most: 60 },
    ],
    Years: ({ years }) => ({ count: years }),
    Until: ({ until }) => until,
    Movements: ({ movements }) => ({ count: movements, most: countedMax }),
    'Last change': ({ changedAt }) => ({ at: changedAt }),
    Tokens: ({ tokens }) => ({ count: tokens }),
    Subscriptions: ({ subscriptions }) => ({ count: subscriptions }),
  },
  read: listFolders,
  ...byTenant,
}

export function folderFacts(folder: FolderFacts): Facts {
  return {
    Folder: folder.id,
    Name: { foreign: folder.name },
    Reference: { foreign: folder.reference },
    'SIRET or SIREN': folder.siret,
    Firm: [{ to: `/firms/${folder.firmId}`, text: folder.firmId }, ' ', { foreign: folder.firmName }],
    Tenant: [folder.schemaId, ' ', { foreign: folder.schemaName }],
    Currency: folder.currency,
    Created: { at: folder.createdAt },
    'Ledger version': { count: folder.ledgerVersion },
    'Last change': lastChange(folder),
    Drafts: { count: folder.drafts, most: draftsMax },
  }
}

/**
 * The last logged change of a folder. The log of changes leaves out years, banks and taxes, and old changes are deleted
 * from it.
 */
function lastChange({ ledgerVersion, loggedVersion, loggedAt }: FolderFacts): Cell {
  if (loggedVersion === null) return 'not in the log of changes'
  if (loggedVersion === ledgerVersion) return { at: loggedAt }
  return ['after ', { at: loggedAt }, ', when version ', { count: loggedVersion }, ' was written']
}

/** The table of a folder's years, for the current version of its ledger. */
export function yearColumns({ ledgerVersion }: FolderFacts): Table<YearFacts> {
  return {
    caption: 'Years',
    none: 'This folder has no year.',
    columns: {
      Id: ({ id }) => id,
      From: ({ startDate }) => startDate,
      To: ({ endDate }) => endDate,
      State: ({ closedAt }) => (closedAt === null ? 'open' : ['closed ', { at: closedAt }]),
      Entries: entriesOf,
      Movements: (year) => movementsOf(year, ledgerVersion),
    },
  }
}

/**
 * The number of entries of a year: exact up to `countedMax`; beyond that, an estimate from the movements of the first
 * entries.
 */
function entriesOf({ entries, sampled, streamed }: YearFacts): Cell {
  if (entries <= countedMax || streamed === null || !sampled) return { count: entries, most: countedMax }
  const estimate = (Number(streamed) * entries) / sampled
  return ['about ', { count: Math.max(countedMax, Number(estimate.toPrecision(3))) }]
}

/**
 * The number of movements of a year: exact up to `countedMax`; beyond that, the number that its last complete stream
 * found.
 */
function movementsOf({ movements, streamed, streamedVersion }: YearFacts, ledgerVersion: string): Cell {
  if (movements <= countedMax || streamed === null) return { count: movements, most: countedMax }
  if (streamedVersion === ledgerVersion) return { count: streamed }
  return [{ count: streamed }, ' at version ', { count: streamedVersion! }]
}

export const lastPullColumns: Table<LastPull> = {
  caption: 'Last pull of each partner',
  none: 'No partner pulled this folder in the newest rows of its audit.',
  columns: {
    Partner: ({ partnerCode, thirdPartyId }) => partnerCell(partnerCode) ?? thirdPartyId,
    Token: ({ tokenId }) => tokenId,
    At: ({ at }) => ({ at }),
    Request: ({ act }) => ({ foreign: act, most: 80 }),
    Rows: ({ rows }) => rows && { count: rows },
    Bytes: ({ bytes }) => bytes && { bytes },
  },
}
