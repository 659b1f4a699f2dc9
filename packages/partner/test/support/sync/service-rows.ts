export const changesPath = '/api/v1/mad/ledgers/changes'

/** The rows of each table of a ledger as the service gives them, by the path of the bytes alone. */
export async function tablesOf(
  url: string,
  caller: Record<string, string>,
  society: string,
): Promise<Record<string, string>> {
  const answer = await fetch(`${url}${changesPath}?version=1.0.0`, {
    method: 'POST',
    headers: { ...caller, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ledgers: [{ society }] }),
  })
  const tables: Record<string, string> = {}
  let table = ''
  for (const line of (await answer.text()).split('\n')) {
    if (line.startsWith('{"table"')) {
      table = JSON.parse(line).table
      tables[table] = ''
    } else if (line !== '' && !line.startsWith('{')) tables[table] += `${line}\n`
  }
  return tables
}
