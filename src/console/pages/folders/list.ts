import type { PagedList } from '../../../lists/list.ts'
import { listPage, searchFilter } from '../parts/list-page.ts'
import { type FolderSearch, type ListedFolder, listFolders } from './folders.sql.ts'

const folderList: PagedList<ListedFolder, FolderSearch> = {
  caption: 'Folders, by id',
  none: 'No folder has this id, name or reference.',
  columns: {
    Id: ({ id }) => ({ to: `/folders/${id}`, text: id }),
    Name: ({ name }) => ({ theirs: name }),
    Reference: ({ reference }) => ({ theirs: reference }),
    Firm: ({ firmId, firmName }) => [firmId, ' ', { theirs: firmName, most: 60 }],
    Years: ({ years }) => ({ count: years }),
    Until: ({ until }) => until,
    'Ledger version': ({ ledgerVersion }) => ({ count: ledgerVersion }),
  },
  read: listFolders,
  placeOf: ({ schemaId, id }) => `${schemaId}.${id}`,
  places: /^\d{1,16}\.\d{1,16}$/,
}

export const foldersPage = listPage({ path: '/folders', title: 'Folders' }, folderList, {
  search: searchFilter('Id, or a part of the name or reference'),
})
