/** `npm run docs`: what writes pages and files from the code, and the site of the documentation. */
import { type Program, runNamed } from '../test/programs.ts'

const pages: Record<string, Program> = {
  api: { about: 'the types of the API in the client of partners', node: ['docs/api-types.ts'] },
  errors: { about: 'docs/errors.md, from the table of errors', node: ['docs/errors-page.ts'] },
  commands: {
    about: 'docs/commands.md, from the declarations of the commands',
    node: ['docs/commands-page.ts'],
  },
  package: {
    about: "the declarations of the partners' package; --released keeps them as those of its version",
    node: ['packages/partner/package/api-report.ts'],
  },
  python: { about: 'what the package for Python shares with the service', node: ['docs/python-contract.ts'] },
  bench: { about: 'the results of the benches, in the pages that show them', node: ['docs/bench-tables.ts'] },
  site: { about: 'the site of the documentation', node: ['docs/site/build.ts'] },
  screenshots: { about: 'pictures from real runs, all or those named', node: ['docs/screenshots.ts'] },
}

runNamed('docs', pages)
