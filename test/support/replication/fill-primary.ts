import { fillLedger } from '../ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../ledgers/tenants.ts'

/** A partner with a company and a firm token, and the ledger of the first folder. */
export async function fillPrimary(ownerUrl: string) {
  const staff = await createTenants(ownerUrl)
  const secret = await staff.thirdParty('PARTNER')
  const { rows } = await staff.client.query(`select id from grandlivre.third_parties where code = 'PARTNER'`)
  const thirdPartyId: string = rows[0].id
  await fillLedger(staff.client, { ...folders.first, label: 'first', thirdPartyId })
  const company = credentials(await staff.token('PARTNER', 'api', folders.first), secret)
  const firm = credentials(await staff.token('PARTNER', 'firm', folders.first), secret)
  return { staff, secret, thirdPartyId, company, firm }
}
