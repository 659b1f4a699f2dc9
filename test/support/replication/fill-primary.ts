import { fillFolders } from '../ledgers/ledger.ts'
import { createTenants, credentials, folders } from '../ledgers/tenants.ts'

/** Creates a partner with a company and a firm token, and fills the ledger of the first folder. */
export async function fillPrimary(ownerUrl: string) {
  const staff = await createTenants(ownerUrl)
  const { secret, thirdPartyId } = await fillFolders(staff, { first: folders.first })
  const company = credentials(await staff.token('PARTNER', 'api', folders.first), secret)
  const firm = credentials(await staff.token('PARTNER', 'firm', folders.first), secret)
  return { staff, secret, thirdPartyId, company, firm }
}
