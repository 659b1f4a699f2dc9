import { folderList } from '../../../lists/folders.ts'
import { listPage, searchFilter } from '../parts/list-page.ts'

export const foldersPage = listPage({ path: '/folders', title: 'Folders' }, folderList, {
  search: searchFilter('Id, or a part of the name or reference'),
})
