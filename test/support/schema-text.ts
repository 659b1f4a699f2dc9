/**
 * The schema `grandlivre` of a database as text, from its catalog: PostgreSQL's own pg_dump does not come
 * with npm, and scatters what belongs to a table over the whole file. Here each table is followed by
 * everything that depends on it. Everything but columns and parameters is sorted by name, so two databases
 * with the same schema give the same text.
 *
 * Omitted: rows, owners (logins are the operator's choice), and the schema `pgboss`, which the queue's
 * library creates and migrates.
 */
import type pg from 'pg'

export async function readSchemaText(client: pg.ClientBase): Promise<string> {
  // PostgreSQL qualifies the names of everything that is not on the path.
  await client.query('set search_path = grandlivre')
  const blocks: string[] = []
  for (const query of [schema, types, sequences, tables, functions]) {
    const { rows } = await client.query<{ text: string }>(query)
    blocks.push(...rows.map(({ text }) => text.trimEnd()))
  }
  return `${blocks.join('\n\n')}\n`
}

/**
 * A GRANT for each grantee but the owner, as a subquery that yields one text.
 * @param acl expression of type aclitem[]
 * @param on what follows GRANT ... ON
 */
function grants(acl: string, on: string, owner: string): string {
  return `(select string_agg(format(e'\\nGRANT %s ON %s TO %s;', rights, ${on}, grantee), '' order by grantee)
    from (
      select coalesce(r.rolname, 'PUBLIC') as grantee, string_agg(a.privilege_type, ', ' order by a.privilege_type) as rights
      from aclexplode(${acl}) a left join pg_roles r on r.oid = a.grantee
      where a.grantee <> ${owner} group by 1) as granted)`
}

/** One line per row of a catalog, as a subquery that yields one text. */
function lines(line: string, from: string, order: string): string {
  return `(select string_agg(${line}, '' order by ${order}) from ${from})`
}

const schema = `
  select concat('CREATE SCHEMA grandlivre;', ${grants('n.nspacl', `'SCHEMA grandlivre'`, 'n.nspowner')}) as text
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

/** The key first, then unique constraints, checks and references. NOT NULL is part of its column. */
const constraints = `
  select 10000 + row_number() over (order by position(k.contype::text in 'pucf'), k.conname),
    format('CONSTRAINT %s %s', k.conname, pg_get_constraintdef(k.oid, true))
  from pg_constraint k where k.conrelid = c.oid and k.contype <> 'n'`

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
    ${lines(policy, 'pg_policy p where p.polrelid = c.oid', 'p.polname')},
    ${grants('c.relacl', 'c.relname', 'c.relowner')},
    ${lines(
      `granted.text`,
      `(select a.attname, ${grants('a.attacl', `format('%s (%s)', c.relname, a.attname)`, 'c.relowner')} as text
        from pg_attribute a where a.attrelid = c.oid and a.attacl is not null) as granted`,
      'granted.attname',
    )}) as text
  from pg_class c where c.relnamespace = 'grandlivre'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
  order by c.relname`

/** PUBLIC may call a function unless that right was revoked. */
const functions = `
  select concat(pg_get_functiondef(f.oid), ';',
    case when f.proacl is not null and not exists (select from aclexplode(f.proacl) a where a.grantee = 0)
      then format(e'\\nREVOKE ALL ON FUNCTION %s FROM PUBLIC;', f.oid::regprocedure) end,
    ${grants('f.proacl', `'FUNCTION ' || f.oid::regprocedure`, 'f.proowner')}) as text
  from pg_proc f where f.pronamespace = 'grandlivre'::regnamespace
  order by f.oid::regprocedure::text`
