/**
 * The schema `grandlivre` of a database as text, from its catalog: PostgreSQL's own pg_dump does not come
 * with npm, and scatters what belongs to a table over the whole file. Here each table is followed by
 * everything that depends on it, except references and policies, which name tables that come later. Everything
 * but columns and parameters is sorted by name, so two databases with the same schema give the same text.
 *
 * The text can be run where the schema is empty. Functions that tables use come before them; functions that
 * use tables come last, each after those that it calls.
 *
 * Omitted: rows but those of `migrations`, owners (logins are the operator's choice), and the schema `pgboss`,
 * which the queue's library creates and migrates.
 */
import type pg from 'pg'

export async function readSchemaText(client: pg.ClientBase): Promise<string> {
  // PostgreSQL qualifies the names of everything that is not on the path.
  await client.query('set search_path = grandlivre')
  const read = async (query: string) => {
    const { rows } = await client.query<{ text: string }>(query)
    return rows.map(({ text }) => text.trim())
  }
  const defined = inOrder((await client.query<DefinedFunction>(functions)).rows)
  const definitions = (usesTables: boolean) =>
    defined.filter((each) => each.usesTables === usesTables).map(({ text }) => text.trim())
  const blocks = [
    ...(await read(schema)),
    ...(await read(types)),
    ...(await read(sequences)),
    ...definitions(false),
    ...(await read(tables)),
    ...(await read(references)),
    ...definitions(true),
    ...(await read(versions)),
  ]
  return `${blocks.join('\n\n')}\n`
}

const head = `-- The schema after all migrations. A new database begins with it: migrate.ts runs it, and then first-rows.sql.
-- After a change of the schema, \`npm run schema\` rewrites it; a test compares it. Comments are written here by hand, above
-- a table, a column or another object, and stay there. The functions as they were written, with reasons, are in
-- migrations/functions/. Left out: rows, owners, and the schema pgboss, which the library of the queue makes and migrates.

do $$ begin
  if to_regnamespace('grandlivre') is null then
    create schema grandlivre;
  end if;
  if not exists (select from pg_roles where rolname = 'grandlivre_service') then
    create role grandlivre_service nologin;
  end if;
end $$;
-- An empty one is left of a start of 0.3.0 that failed.
drop table if exists migrations;
-- They name tables that come later.
set local check_function_bodies = off;

`

/** The text as a file that can be run, with the comments above the same lines of the former one. */
export function withComments(text: string, former: string): string {
  const comments = new Map<string, string[]>()
  let above: string[] = []
  for (const [place, line] of places(former.slice(former.indexOf('check_function_bodies = off'))))
    if (place === undefined) above.push(line)
    else {
      if (above.length > 0) comments.set(place, above)
      above = []
    }
  const commented = [...places(text)].flatMap(([place, line]) => [...(comments.get(place!) ?? []), line])
  return `${head}${commented.join('\n')}`
}

/** Each line with its place, such as `TABLE movements  shares`; undefined for a comment outside of functions. */
function* places(text: string): Generator<[place: string | undefined, line: string]> {
  let object = ''
  let isBody = false
  for (const line of text.split('\n')) {
    if (line.split('$function$').length % 2 === 0) isBody = !isBody
    const isComment = !isBody && /^\s*--/.test(line)
    const isColumn = /^ {2}\w+ /.test(line)
    if (!isComment && !isColumn) object = line.split('(', 1)[0]!
    yield [isComment ? undefined : `${object}${isColumn ? line.trim().split(' ', 1)[0] : ''}`, line]
  }
}

interface DefinedFunction {
  id: string
  text: string
  /** Ids of the functions that it calls, as far as PostgreSQL knows: a body that is a string is not parsed. */
  calls: string[]
  usesTables: boolean
}

/** Each after those that it calls, otherwise as given; what calls a function that uses tables uses them, too. */
function inOrder(given: readonly DefinedFunction[]): DefinedFunction[] {
  const ordered = new Map<string, DefinedFunction>()
  const add = (each: DefinedFunction) => {
    const called = each.calls.map((id) => ordered.get(id) ?? add(given.find((other) => other.id === id)!))
    const usesTables = each.usesTables || called.some((other) => other.usesTables)
    if (!ordered.has(each.id)) ordered.set(each.id, { ...each, usesTables })
    return ordered.get(each.id)!
  }
  given.forEach(add)
  return [...ordered.values()]
}

/**
 * A GRANT for each grantee but the owner, as a subquery that yields one text.
 * @param acl expression of type aclitem[]
 * @param on what follows GRANT ... ON
 * @param of what follows each right, such as a column in parentheses
 */
function grants(acl: string, on: string, owner: string, of = `''`): string {
  return `(select string_agg(format(e'\\nGRANT %s ON %s TO %s;', rights, ${on}, grantee), '' order by grantee)
    from (
      select coalesce(r.rolname, 'PUBLIC') as grantee, string_agg(a.privilege_type || ${of}, ', ' order by a.privilege_type) as rights
      from aclexplode(${acl}) a left join pg_roles r on r.oid = a.grantee
      where a.grantee <> ${owner} group by 1) as granted)`
}

/** One line per row of a catalog, as a subquery that yields one text. */
function lines(line: string, from: string, order: string): string {
  return `(select string_agg(${line}, '' order by ${order}) from ${from})`
}

const schema = `
  select ${grants('n.nspacl', `'SCHEMA grandlivre'`, 'n.nspowner')} as text
  from pg_namespace n where n.nspname = 'grandlivre'`

const types = `
  select case t.typtype
    when 'd' then format('CREATE DOMAIN %s AS %s %s;', t.typname, format_type(t.typbasetype, t.typtypmod),
      (select string_agg(pg_get_constraintdef(c.oid, true), ' ' order by c.conname)
       from pg_constraint c where c.contypid = t.oid))
    else format(e'CREATE TYPE %s AS (%s\\n);', t.typname,
      (select string_agg(format(e'\\n  %s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ',' order by a.attnum)
       from pg_attribute a where a.attrelid = t.typrelid and not a.attisdropped))
    end as text
  from pg_type t left join pg_class c on c.oid = t.typrelid
  where t.typnamespace = 'grandlivre'::regnamespace and (t.typtype in ('d', 'e', 'r') or c.relkind = 'c')
  order by t.typname`

const sequences = `
  select concat(
    format('CREATE SEQUENCE %s AS %s INCREMENT BY %s MINVALUE %s MAXVALUE %s START WITH %s;', c.relname,
      format_type(s.seqtypid, null), s.seqincrement, s.seqmin, s.seqmax, s.seqstart),
    ${grants('c.relacl', `'SEQUENCE ' || c.relname`, 'c.relowner')}) as text
  from pg_sequence s join pg_class c on c.oid = s.seqrelid
  where c.relnamespace = 'grandlivre'::regnamespace
  order by c.relname`

const columns = `
  select a.attnum as place, format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod))
    || coalesce(case a.attgenerated when '' then ' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid, true)
      else format(' GENERATED ALWAYS AS (%s) STORED', pg_get_expr(d.adbin, d.adrelid, true)) end, '')
    || case when a.attnotnull then ' NOT NULL' else '' end as line
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped`

/** The key first, then unique constraints and checks. NOT NULL is part of its column. */
const constraints = `
  select 10000 + row_number() over (order by position(k.contype::text in 'puc'), k.conname),
    format('CONSTRAINT %s %s', k.conname, pg_get_constraintdef(k.oid, true))
  from pg_constraint k where k.conrelid = c.oid and k.contype in ('p', 'u', 'c', 'x')`

const policy = `format(e'\\nCREATE POLICY %s ON %s%s FOR %s TO %s%s%s;', p.polname, c.relname,
  case when not p.polpermissive then ' AS RESTRICTIVE' end,
  case p.polcmd when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE' when 'd' then 'DELETE' else 'ALL' end,
  (select string_agg(coalesce(r.rolname, 'PUBLIC'), ', ' order by r.rolname)
   from unnest(p.polroles) as member left join pg_roles r on r.oid = member),
  ' USING (' || pg_get_expr(p.polqual, c.oid, true) || ')',
  ' WITH CHECK (' || pg_get_expr(p.polwithcheck, c.oid, true) || ')')`

const tables = `
  select concat(
    format(e'CREATE %sTABLE %s (%s\\n)%s;', case c.relpersistence when 'u' then 'UNLOGGED ' end, c.relname,
      (select string_agg(e'\\n  ' || line, ',' order by place) from (${columns} union all ${constraints}) as body),
      ' WITH (' || array_to_string(c.reloptions, ', ') || ')'),
    ${lines(
      `e'\\n' || pg_get_indexdef(i.indexrelid, 0, true) || ';'`,
      `pg_index i join pg_class x on x.oid = i.indexrelid
        where i.indrelid = c.oid and not exists (select from pg_constraint k where k.conindid = x.oid and k.contype in ('p', 'u', 'x'))`,
      'x.relname',
    )},
    ${lines(
      `e'\\n' || pg_get_triggerdef(t.oid, true) || ';'`,
      'pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal',
      't.tgname',
    )},
    case when c.relrowsecurity then format(e'\\nALTER TABLE %s ENABLE ROW LEVEL SECURITY;', c.relname) end,
    case when c.relforcerowsecurity then format(e'\\nALTER TABLE %s FORCE ROW LEVEL SECURITY;', c.relname) end,
    ${grants('c.relacl', 'c.relname', 'c.relowner')},
    ${lines(
      `granted.text`,
      `(select att.attname, ${grants('att.attacl', 'c.relname', 'c.relowner', `format(' (%s)', att.attname)`)} as text
        from pg_attribute att where att.attrelid = c.oid and att.attacl is not null) as granted`,
      'granted.attname',
    )}) as text
  from pg_class c where c.relnamespace = 'grandlivre'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
  order by c.relname`

const references = `
  select concat(
    ${lines(
      `format(e'\\nALTER TABLE %s ADD CONSTRAINT %s %s;', c.relname, k.conname, pg_get_constraintdef(k.oid, true))`,
      `pg_constraint k where k.conrelid = c.oid and k.contype = 'f'`,
      'k.conname',
    )},
    ${lines(policy, 'pg_policy p where p.polrelid = c.oid', 'p.polname')}) as text
  from pg_class c where c.relnamespace = 'grandlivre'::regnamespace and c.relkind in ('r', 'p')
    and exists (select from pg_constraint k where k.conrelid = c.oid and k.contype = 'f'
      union all select from pg_policy p where p.polrelid = c.oid)
  order by c.relname`

const versions = `
  select concat(e'INSERT INTO migrations (version, name) VALUES\\n', string_agg(format('  (%s, %L)', version, name),
    e',\\n' order by version), ';') as text
  from migrations`

/** PUBLIC may call a function unless that right was revoked. */
const functions = `
  select f.oid::text as id,
    array(select d.refobjid::text from pg_depend d join pg_proc other on other.oid = d.refobjid
      where d.classid = 'pg_proc'::regclass and d.objid = f.oid and d.refclassid = 'pg_proc'::regclass
        and other.pronamespace = f.pronamespace and d.refobjid <> f.oid) as calls,
    exists (select from pg_depend d left join pg_type t on d.refclassid = 'pg_type'::regclass and t.oid = d.refobjid
      join pg_class used on used.oid = case d.refclassid when 'pg_class'::regclass then d.refobjid else t.typrelid end
      where d.classid = 'pg_proc'::regclass and d.objid = f.oid and used.relkind = 'r') as "usesTables",
    concat(pg_get_functiondef(f.oid), ';',
    case when f.proacl is not null and not exists (select from aclexplode(f.proacl) a where a.grantee = 0)
      then format(e'\\nREVOKE ALL ON FUNCTION %s FROM PUBLIC;', f.oid::regprocedure) end,
    ${grants('f.proacl', `'FUNCTION ' || f.oid::regprocedure`, 'f.proowner')}) as text
  from pg_proc f where f.pronamespace = 'grandlivre'::regnamespace
  order by f.oid::regprocedure::text`
