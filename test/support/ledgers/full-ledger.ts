/**
 * What a full export shows beyond movements, added to a filled folder: companies, employees, banks, closings.
 */
import type pg from 'pg'
import type { FolderKey } from '../../../src/formats/rows.ts'

/**
 * Every byte that JSON or COPY escapes, other scripts, and texts that look like a null or an escape of COPY.
 */
export const hostileText = `"\\N\\\\ \t\r\n\u0001\u007f\u2028'; é 😀 \\.</script>`

export async function addToFolder(client: pg.ClientBase, folder: FolderKey): Promise<void> {
  await client.query('begin')
  await client.query('set local search_path = grandlivre')
  await client.query(`select set_config('test.text', $1, true)`, [hostileText])
  for (const statement of statements)
    await client.query(
      statement
        .replaceAll('§key', `${folder.schemaId}, ${folder.folderId}`)
        .replaceAll('§folder', `schema_id = ${folder.schemaId} and folder_id = ${folder.folderId}`)
        .replaceAll('§id', `schema_id = ${folder.schemaId} and id = ${folder.folderId}`)
        .replaceAll('§text', `current_setting('test.text')`),
    )
  await client.query('commit')
}

const address = `row('12', 'bis', 'rue', §text, 'BP 1', '44000', §text, 'FRANCE')::address`
const contacts = `'[{"email":"a@b.fr","role":null,"lastname":"Né","firstname":"Ça","phoneNumber":"+33"}, {"role":"x"}]'`

/** Accounts 101 to 110 exist: 401ALPHA is 103, 411DUPONT 104, 4111 107, 401BETA 109. */
const statements = [
  `update folders set name = §text, address = ${address}, capital = 123456789, siret = '12345678901234',
     contact_first_name = §text, contact_mail = 'm@x.fr', rcs_producer_id = '75', rcs_name = §text where §id`,
  `insert into vat_codes (schema_id, folder_id, id, code, rate)
     values (§key, 81, §text, 2000), (§key, 82, 'N', 550), (§key, 83, 'Z', 0), (§key, 84, 'M', 10000)`,
  `insert into accounts (schema_id, folder_id, id, number, name, closed, counterpart_account_id, correspondance_account_id)
     values (§key, 201, '42100001', §text, true, 101, 102), (§key, 202, '421', 'Personnel', false, null, null),
            (§key, 203, '4210002', 'Sans suite', false, null, null), (§key, 204, '401', 'Fournisseurs', false, 101, 102),
            (§key, 205, '40', 'Tiers', true, 101, 102), (§key, 206, '4010', §text, false, null, null),
            (§key, 207, '41', 'Clients', false, null, 103), (§key, 208, '4220001', 'Comité', false, null, null)`,
  `insert into companies (schema_id, folder_id, account_id, name, siren, ceo, payment_id, vat_id, address,
       ape_producer_id, ape_code, ape_name, ibans, contacts, miscellaneous)
     select §key, a.id, §text, '123456789', §text, 51 + a.id % 7, 81 + a.id % 4, ${address}, '1', '62.01Z', §text,
       array['FR76', §text, ''], ${contacts}::jsonb, '{"group":"G","archived":true,"language":"fr","referent":"R"}'
     from accounts a where §folder and a.number ~ '^4[01]1[A-Z]'`,
  `insert into companies (schema_id, folder_id, account_id, name, ape_code, address, miscellaneous) values
     (§key, 206, '', '62', row(null, null, 'rue', 'Hugo', null, null, null, null)::address, '{}')`,
  `insert into employees (schema_id, folder_id, account_id, first_name, last_name, email, phone_number, phone_number_bis,
       nir, profession, payment_id, address, ibans, contacts, miscellaneous, doubtful_account_id)
     values (§key, 201, §text, §text, 'e@x.fr', '+1', '+2', '1800175', §text, 57, ${address}, array['FR1'],
       ${contacts}::jsonb, '{"archived":false,"referent":"R"}', 104),
       (§key, 202, null, null, null, null, null, null, null, null, row('1', '', 'rue', '', null, null, null, null)::address,
       '{}', '[]', null, 105)`,
  `update journals set counterpart_account_id = 106, locked = true where §folder and type in ('BQ', 'CAISSE')`,
  `insert into banks (schema_id, folder_id, id, rib, iban, bic, account_id, journal_id, is_default)
     values (§key, 91, null, 'FR76', §text, null, 33, true), (§key, 92, §text, '', '', 106, 34, false)`,
  `update axes set default_section_id = 73 where §folder and id = 61`,
  `insert into axes (schema_id, folder_id, id, code, name) values (§key, 63, §text, 'Sans section')`,
  `update sections set account_roots = array['60', '7'], closed = true where §folder and id in (72, 74)`,
  // Already the next day in Paris.
  `update exercices set closed_at = '2024-09-30T22:30:00Z', closed_by_id = 7, closed_by_first_name = §text,
     lettering = 'MULTI' where §folder and id = 11`,
  `insert into entries (schema_id, folder_id, id, exercice_id, journal_id, date, accounted_at, created_at, validated_at,
       source, currency, comment)
     select §key, n, 12, 31, '2024-09-01', '2024-09-01', '2024-09-01T10:00:00Z',
       case when n % 2 = 0 then date '2024-09-02' end, 'E', 'EUR', 'no movements'
     from unnest(array[1, 2, 500, 700, 4000]) n`,
]
