/**
 * Draws the reference with Swagger UI. Adds a table of contents and, if the service offers them, the credentials of the
 * demo. Shows only the beginning of large answers.
 */

/**
 * Most characters of an answer that are shown. An export has megabytes, and the browser would halt while it draws them.
 */
const shownCharsMax = 64 * 1024

const status = document.getElementById('credentials')

try {
  followColorScheme()
  await draw()
} catch (error) {
  status.textContent = `The reference cannot be shown: ${error.message}. Load the page again.`
}

async function draw() {
  const [spec, demo] = await Promise.all([
    read('/api/v1/openapi.json'),
    read('/docs/api/demo-credentials.json'),
  ])
  spec.servers = [{ url: location.origin }]
  spec.externalDocs = { description: 'Documentation', url: '/docs/' }
  prepareOperations(spec, demo)
  listContents(spec)
  const ui = globalThis.SwaggerUIBundle({
    spec,
    dom_id: '#reference',
    deepLinking: true,
    docExpansion: 'list',
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    requestInterceptor: (request) => Object.assign(request, { userFetch: fetchBeginning }),
    onComplete: () => {
      if (demo) {
        ui.preauthorizeApiKey('accessToken', demo.companyToken)
        ui.preauthorizeApiKey('partnerSecret', demo.thirdPartySecret)
      }
      status.textContent = demo
        ? 'Requests from this page use the token and the secret of the demo folder on this machine. Authorize changes them.'
        : 'To send requests from this page, enter an access token and a partner secret at Authorize.'
    },
  })
}

/** Reads the JSON at a path. Returns undefined if there is none (204). */
async function read(path) {
  // The service gives the demo's credentials only to a page that names its own address (demo-credentials.ts).
  const response = await fetch(path, { referrerPolicy: 'same-origin' })
  if (!response.ok) throw new Error(`${path} answers ${response.status}`)
  return response.status === 204 ? undefined : response.json()
}

/** Each operation with its group and its place on the page, in the order of the groups. */
function operationsOf({ tags, paths, webhooks }) {
  const all = (items) =>
    Object.entries(items).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    )
  const requests = all(paths).map(({ path, method, operation }) => {
    const group = operation.tags[0]
    return { group, path: path.replace('/api/v1', ''), method, operation, prefix: group.replaceAll(' ', '_') }
  })
  const sent = all(webhooks).map((one) => ({ group: 'Sent to subscribers', ...one, prefix: 'webhooks' }))
  const order = tags.map(({ name }) => name)
  requests.sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group))
  return [...requests, ...sent].map(({ prefix, ...one }) => {
    const operationId = [one.method, ...one.path.match(/\w+/g)].join('-')
    return { ...one, operationId, id: `operations-${prefix}-${operationId}` }
  })
}

/**
 * Removes most examples. Swagger UI fills each field with the example of its parameter, but all filters at once select
 * nothing, and an invented id exists nowhere. So only required parameters keep their examples. The demo has a fiscal
 * year that can be asked for.
 */
function prepareOperations(spec, demo) {
  for (const { operation, operationId } of operationsOf(spec)) {
    // The address of the operation on this page.
    operation.operationId = operationId
    // Swagger UI knows no ranges of statuses, only `default`.
    const { '4XX': error, '5XX': _, ...answers } = operation.responses
    if (error) operation.responses = { ...answers, default: error }
    for (const parameter of operation.parameters ?? []) {
      if (!parameter.required || parameter.in === 'path') {
        delete parameter.example
        delete parameter.schema.example
      }
      // Full exports take a fiscal year only in some formats.
      const isPlain = !operation.parameters.some(({ name }) => name === 'format')
      if (demo && isPlain && parameter.name === 'idExercice') parameter.example = demo.idExercice
    }
  }
}

/**
 * Takes the beginning of an answer and leaves the rest; the service then ends the export. Drops Content-Disposition,
 * because with this header Swagger UI shows a link instead of the body.
 */
async function fetchBeginning(url, request) {
  const response = await fetch(url, request)
  const { status, statusText } = response
  const headers = new Headers(response.headers)
  headers.delete('content-disposition')
  const body = response.body && shown(await beginningOf(response.body))
  return new Response(body, { status, statusText, headers })
}

async function beginningOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (text.length <= shownCharsMax) {
    const { value, done } = await reader.read()
    if (done) return { text, isWhole: true }
    text += value
  }
  await reader.cancel()
  return { text: text.slice(0, shownCharsMax), isWhole: false }
}

function shown({ text, isWhole }) {
  if (isWhole) return text
  const note = `This page shows the first ${shownCharsMax / 1024} KB of the answer.`
  const items = text.startsWith('[') ? wholeItems(text) : undefined
  if (items) return JSON.stringify([...items, note])
  return `${text.slice(0, text.lastIndexOf('\n') + 1) || text}\n${note}`
}

/** Returns the items of an array that are complete in its beginning; undefined if there are none. */
function wholeItems(text) {
  for (let end = text.lastIndexOf('}'); end > 0; end = text.lastIndexOf('}', end - 1))
    try {
      return JSON.parse(`${text.slice(0, end + 1)}]`)
    } catch {
      // This brace ends a part of an item.
    }
  return undefined
}

/** Sets the class that makes Swagger UI dark while the browser prefers that. */
function followColorScheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const apply = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
  dark.addEventListener('change', apply)
  apply()
}

/** Lists the contents from the document: Swagger UI does not announce when it has drawn its groups. */
function listContents(spec) {
  const operations = operationsOf(spec)
  const contents = document.getElementById('contents')
  for (const group of new Set(operations.map((operation) => operation.group))) {
    const heading = document.createElement('h2')
    heading.textContent = group
    const list = document.createElement('ul')
    list.append(...operations.filter((operation) => operation.group === group).map(entryOf))
    contents.append(heading, list)
  }
}

function entryOf({ method, path, id }) {
  const badge = document.createElement('b')
  badge.textContent = method.toUpperCase()
  const link = document.createElement('a')
  link.href = `#${id}`
  link.append(badge, ' ', path)
  link.addEventListener('click', (event) => {
    event.preventDefault()
    open(id)
  })
  const item = document.createElement('li')
  item.append(link)
  return item
}

/** Opens an operation, and its group if the reader has closed it. */
function open(id) {
  if (!document.getElementById(id)) {
    const group = [...document.querySelectorAll('.opblock-tag')].find(({ id: tag }) =>
      id.startsWith(`${tag.replace('-tag', '')}-`),
    )
    group?.click()
  }
  requestAnimationFrame(() => {
    const operation = document.getElementById(id)
    if (!operation) return
    if (!operation.classList.contains('is-open')) operation.querySelector('.opblock-summary-control').click()
    operation.scrollIntoView()
  })
}
