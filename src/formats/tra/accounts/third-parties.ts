/**
 * The collective account and the code of each third party in a TRA file (docs/spec/tra.md#cae). A ledger that was
 * imported from a FEC has the collective account that its file gives; any other has one per root.
 */
import { accountNumber, type PartyKind, partyKind } from '../../party-kind.ts'
import {
  type CollectiveAccount,
  type CollectiveAccounts,
  collectiveAccounts,
  partyNatures,
} from './nature.ts'

/** An account with what a FEC filed of it: CompteNum and CompteLib, and CompAuxNum if it is a third party's. */
export interface NumberedAccount {
  id: string
  number: string
  name: string
  filedNumber: string | null
  filedName: string | null
  auxiliaryNumber: string | null
}

export interface ThirdParties {
  /** Of third parties that were not filed with one. */
  ofRoots: CollectiveAccounts
  /** Each once, those of roots first. */
  collectives: CollectiveAccount[]
  /** By id of the account. */
  of: ReadonlyMap<string, ThirdParty>
}

export interface ThirdParty {
  /** Its number in the file. */
  code: string
  /** The number of its collective account. */
  collective: string
}

/** Columns of an account number (p. 22). */
const numberMax = 17

export function thirdParties(accounts: readonly NumberedAccount[]): ThirdParties {
  const filed = filedCollectives(accounts)
  const ofRoots = new Map(collectiveAccounts(accounts))
  const ownOf = (account: NumberedAccount) => {
    const number = account.auxiliaryNumber === null ? account.number : filedCollective(account)
    return number === undefined ? undefined : filed.get(number)
  }
  const parties = accounts.flatMap((account) => {
    const kind = partyKind(account.number)
    return kind === undefined ? [] : [{ account, kind, own: ownOf(account) }]
  })
  for (const [kind, { id, number }] of ofRoots) {
    if (id !== null) continue
    const same = filed.get(number)
    if (same !== undefined) ofRoots.set(kind, same)
    else if (!parties.some((party) => party.kind === kind && party.own === undefined)) ofRoots.delete(kind)
  }
  const codes = codesOf(
    parties.map(({ account }) => account),
    new Set(accounts.map(({ number }) => number)),
  )
  return {
    ofRoots,
    collectives: [
      ...new Map([...ofRoots.values(), ...filed.values()].map((one) => [one.number, one])).values(),
    ],
    of: new Map(
      parties.map(({ account: { id }, kind, own }) => [
        id,
        { code: codes.get(id)!, collective: (own ?? ofRoots.get(kind)!).number },
      ]),
    ),
  }
}

/** By number. The folder's own account if it has one, which lines without an auxiliary are booked on. */
function filedCollectives(accounts: readonly NumberedAccount[]): Map<string, CollectiveAccount> {
  const own = new Map(
    accounts
      .filter(({ auxiliaryNumber }) => auxiliaryNumber === null)
      .map((account) => [account.number, account]),
  )
  const found = new Map<string, CollectiveAccount>()
  for (const account of accounts) {
    const number = filedCollective(account)
    if (number === undefined || found.has(number)) continue
    const { id = null, name = account.filedName || collectiveName(partyKind(number)!) } =
      own.get(number) ?? {}
    found.set(number, { id, number, name })
  }
  return found
}

/** Undefined for an account that is no third party of a FEC, or whose collective account does not fit. */
function filedCollective({ filedNumber, auxiliaryNumber }: NumberedAccount): string | undefined {
  if (filedNumber === null || auxiliaryNumber === null) return undefined
  const number = accountNumber(filedNumber)
  return number.length <= numberMax && partyKind(number) !== undefined ? number : undefined
}

const collectiveName = (kind: PartyKind) => partyNatures[kind].collectiveName

/** Numbers by id of the account; in place of one that is too long the auxiliary number, if no other account has it. */
function codesOf(parties: readonly NumberedAccount[], numbers: ReadonlySet<string>): Map<string, string> {
  const tooLong = parties.filter(({ number }) => number.length > numberMax)
  const wanting = Map.groupBy(tooLong, ({ auxiliaryNumber }) => auxiliaryNumber)
  return new Map(
    parties.map(({ id, number, auxiliaryNumber }) => {
      const isAuxiliary =
        number.length > numberMax &&
        auxiliaryNumber !== null &&
        /^[!-~]{1,17}$/.test(auxiliaryNumber) &&
        !numbers.has(auxiliaryNumber) &&
        wanting.get(auxiliaryNumber)!.length === 1
      return [id, isAuxiliary ? auxiliaryNumber : number]
    }),
  )
}
