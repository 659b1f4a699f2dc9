import { type ClientBase, escapeIdentifier, escapeLiteral } from 'pg'

/** The login of a pooler, as docs/operators/scaling.md describes it. */
export async function createPooledLogin(
  owner: ClientBase,
  { name, password }: { name: string; password: string },
): Promise<void> {
  const login = escapeIdentifier(name)
  const { rows } = await owner.query('select from pg_roles where rolname = $1', [name])
  if (rows.length === 0) await owner.query(`create role ${login} login`)
  await owner.query(
    `alter role ${login} password ${escapeLiteral(password)};
     grant grandlivre_service to ${login} with set true;
     alter role ${login} set role = 'grandlivre_service';
     alter role ${login} set search_path = grandlivre;
     alter role ${login} set datestyle = ISO`,
  )
}
