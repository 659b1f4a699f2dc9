/** A ledger for random histories: 400 entries of two exercices whose ids interleave, with gaps between them. */
import type pg from 'pg'

export interface RandomLedger {
  schemaId: string
  folderId: string
  /** The third party of its API entries. */
  thirdPartyId: string
}

export const exerciceIds = ['11', '12'] as const
export const accountIds = [101, 124] as const
export const journalIds = [31, 35] as const
export const sectionIds = [71, 76] as const
export const paymentIds = [51, 53] as const

export const entryCount = 400

/** Fills an empty folder, as the owner. The same ids in every folder. */
export async function fillRandomLedger(
  client: pg.ClientBase,
  { schemaId, folderId, thirdPartyId }: RandomLedger,
): Promise<void> {
  const at = `${schemaId}, ${folderId}`
  const columns = 'schema_id, folder_id'
  const series = ([first, last]: readonly [number, number]) => `generate_series(0, ${last - first}) n`
  await client.query(`
    insert into grandlivre.payments (${columns}, id, code)
      select ${at}, ${paymentIds[0]} + n, (array['CB', 'VIRT', 'CHQ'])[n + 1] from ${series(paymentIds)};
    insert into grandlivre.accounts (${columns}, id, number, name)
      select ${at}, ${accountIds[0]} + n,
        (array['401', '411', '512', '606', '706', '445'])[1 + n % 6] || lpad(n::text, 3, '0'), 'Compte ' || n
      from ${series(accountIds)};
    insert into grandlivre.vat_codes (${columns}, id, code, rate) values (${at}, 91, 'V1', 2000);
    insert into grandlivre.companies (${columns}, account_id, name, vat_id) values (${at}, ${accountIds[0]}, 'Société', 91);
    insert into grandlivre.accounts (${columns}, id, number, name) values (${at}, 130, '421900', 'Personnel');
    insert into grandlivre.employees (${columns}, account_id, last_name) values (${at}, 130, 'Dupré');
    insert into grandlivre.journals (${columns}, id, code, name, type)
      select ${at}, ${journalIds[0]} + n, 'J' || n, 'Journal ' || n, (array['ACH', 'VTE', 'BQ', 'OD', 'AN'])[n + 1]
      from ${series(journalIds)};
    insert into grandlivre.banks (${columns}, id, iban, bic, journal_id) values (${at}, 81, 'FR76', 'AGRIFRPP', 33);
    insert into grandlivre.axes (${columns}, id, code, name) values (${at}, 61, 'A', 'Axe A'), (${at}, 62, 'B', 'Axe B');
    insert into grandlivre.sections (${columns}, id, axis_id, code, name)
      select ${at}, ${sectionIds[0]} + n, 61 + n % 2, 'S' || n, 'Section ' || n from ${series(sectionIds)};
    insert into grandlivre.exercices (${columns}, id, start_date, end_date)
      values (${at}, 11, '2023-01-01', '2023-12-31'), (${at}, 12, '2024-01-01', '2024-12-31');
    insert into grandlivre.entries (${columns}, id, exercice_id, journal_id, date, accounted_at, created_at, validated_at,
        source, third_party_id, currency, comment)
      select ${at}, 10 + 7 * n, 11 + n % 2, ${journalIds[0]} + n % 5, d, d + n % 40,
        timestamptz '2024-02-01 22:30Z' + n * interval '1 hour', case when n % 9 > 0 then date '2025-01-31' end,
        case when n % 4 = 0 then 'API' else 'E' end, case when n % 4 = 0 then ${thirdPartyId} end, 'EUR',
        case when n % 5 = 0 then 'Commentaire ' || n end
      from generate_series(0, ${entryCount - 1}) n
        cross join lateral (values (make_date(2023 + n % 2, 1 + n % 12, 1 + n % 28))) as day (d);
    insert into grandlivre.movements (${columns}, exercice_id, entry_id, id, account_id, description, invoice_number, debit,
        credit, payment_id, shares)
      select ${at}, 11 + n % 2, 10 + 7 * n, 100000 - 11 * n + (k * 3) % 4, ${accountIds[0]} + (n * 5 + k * 7) % 24,
        'Ligne ' || n || '/' || k, 'F' || n, (1 - k % 2) * (100 + n), k % 2 * (100 + n),
        case when k = 1 then ${paymentIds[0]} + n % 3 end,
        case when n % 6 = k then array[${sectionIds[0]} + n % 6, 5000, 1000000]::bigint[] end
      from generate_series(0, ${entryCount - 1}) n, generate_series(0, n % 4) k`)
}
