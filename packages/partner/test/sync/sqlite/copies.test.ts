import { testCopies } from '../../support/sync/copy-tests.ts'

testCopies('SQLite')
