/**
 * Makes up the companies and people behind the third-party accounts of a seeded folder. Their identifiers have valid
 * check digits, because partners' software verifies them.
 */

import type { Address } from '../../../../src/formats/items/accounts/address.ts'
import type { Contact, Miscellaneous } from '../../../../src/formats/items/accounts/parties.ts'
import type { MasterRows } from '../../../../src/ledger/import/master-data.ts'
import type { Random } from './random.ts'
import words from './words.json' with { type: 'json' }

/**
 * Makes a name. Most names are plain, but one in thirty ends with a hostile text on which readers of exports may fail: quotes,
 * backslashes, tabs, line breaks, control characters, the line separator of JavaScript, a byte-order mark,
 * right-to-left text, emoji of several code points, or a lone backslash-N, which is how COPY writes null.
 */
export function thirdPartyName(random: Random): string {
  const name = random.chance(0.5)
    ? `${random.pick(words.companyNames)} ${random.pick(words.companyForms)}`
    : `${random.pick(words.lastNames)} ${random.pick(words.companyNames)}`
  return random.chance(1 / 30) ? `${name} ${random.pick(words.hostileTexts)}` : name
}

export function addressOf(random: Random): Address {
  const { postalCode, city } = random.pick(words.cities)
  return {
    number: random.chance(0.9) ? String(random.integer(1, 180)) : null,
    locatingIndex: random.chance(0.15) ? random.pick(['bis', 'ter', 'B']) : null,
    streetType: random.pick(words.streetTypes),
    streetName: random.pick(words.streetNames),
    complement: random.chance(0.2)
      ? random.pick(['Bâtiment "A", 2e étage', 'BP 12 (cedex)', 'Z.I. Nord\\Est'])
      : null,
    postalCode,
    city,
    country: random.chance(0.95) ? 'FRANCE' : null,
  }
}

export function companyOf(
  accountId: string,
  name: string,
  paymentId: string,
  vatId: string,
  random: Random,
): MasterRows['companies'][number] {
  const isKnownWell = random.chance(0.8)
  return {
    accountId,
    name,
    siren: isKnownWell ? siren(random) : null,
    ceo: random.chance(0.6) ? personName(random) : null,
    paymentId: isKnownWell ? paymentId : null,
    vatId: isKnownWell ? vatId : null,
    address: isKnownWell ? addressOf(random) : null,
    apeProducerId: isKnownWell ? '441' : null,
    apeCode: isKnownWell ? '4690Z' : null,
    apeName: isKnownWell ? 'Commerce de gros (commerce interentreprises) non spécialisé' : null,
    ibans: Array.from({ length: random.integer(0, 2) }, () => bankDetails(random).iban),
    contacts: Array.from({ length: random.integer(0, 2) }, () => contactOf(random)),
    miscellaneous: miscellaneousOf(random),
  }
}

export function employeeOf(
  accountId: string,
  paymentId: string,
  random: Random,
): MasterRows['employees'][number] {
  const firstName = random.pick(words.firstNames)
  const lastName = random.pick(words.lastNames)
  return {
    accountId,
    firstName,
    lastName,
    email: emailOf(firstName, lastName),
    phoneNumber: phoneNumberOf(random),
    phoneNumberBis: random.chance(0.2) ? phoneNumberOf(random) : null,
    nir: nir(random),
    profession: random.pick(words.professions),
    paymentId,
    address: addressOf(random),
    ibans: [bankDetails(random).iban],
    contacts: random.chance(0.3) ? [contactOf(random)] : [],
    miscellaneous: miscellaneousOf(random),
  }
}

function contactOf(random: Random): Contact {
  const firstname = random.pick(words.firstNames)
  const lastname = random.pick(words.lastNames)
  return {
    firstname,
    lastname,
    phoneNumber: random.chance(0.8) ? phoneNumberOf(random) : null,
    role: random.pick(words.contactRoles),
    email: emailOf(firstname, lastname),
  }
}

function miscellaneousOf(random: Random): Miscellaneous | null {
  if (random.chance(0.5)) return null
  return {
    referent: random.chance(0.5) ? personName(random) : null,
    language: random.pick(['fr', 'en', null]),
    group: random.chance(0.3) ? 'Groupe "Horizon"' : null,
    archived: random.chance(0.1),
  }
}

function personName(random: Random): string {
  return `${random.pick(words.firstNames)} ${random.pick(words.lastNames)}`
}

function phoneNumberOf(random: Random): string {
  return `+33${random.integer(1, 9)}${random.digits(8)}`
}

/** An address at example.com. That name is reserved, so no address belongs to a real person. */
function emailOf(firstName: string, lastName: string): string {
  const ascii = (name: string) =>
    name
      .normalize('NFD')
      .toLowerCase()
      .replace(/[^a-z]/g, '')
  return `${ascii(firstName)}.${ascii(lastName)}@example.com`
}

/** A SIREN: nine digits, of which the last is a check digit by Luhn's formula. */
export function siren(random: Random): string {
  const digits = random.digits(8)
  let sum = 0
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[index])
    const counted = index % 2 === 1 ? digit * 2 : digit
    sum += counted > 9 ? counted - 9 : counted
  }
  return digits + ((10 - (sum % 10)) % 10)
}

/** A social security number: thirteen digits (sex, year, month, department, commune, number) and a key of two. */
function nir(random: Random): string {
  const number =
    random.pick(['1', '2']) +
    String(random.integer(60, 99)) +
    String(random.integer(1, 12)).padStart(2, '0') +
    String(random.integer(21, 95)) +
    random.digits(6)
  return number + String(97n - (BigInt(number) % 97n)).padStart(2, '0')
}

/** @returns a RIB, which consists of bank (5), branch (5), account (11) and key (2), and its IBAN */
export function bankDetails(random: Random): { rib: string; iban: string } {
  const bank = random.pick(['30004', '30003', '20041', '10278', '18206'])
  const branch = random.digits(5)
  const account = random.digits(11)
  const key = 97n - ((89n * BigInt(bank) + 15n * BigInt(branch) + 3n * BigInt(account)) % 97n)
  const rib = bank + branch + account + String(key).padStart(2, '0')
  // To compute the check digits of an IBAN, FR00 is moved to the end, with F as 15 and R as 27.
  const check = 98n - (BigInt(`${rib}152700`) % 97n)
  return { rib, iban: `FR${String(check).padStart(2, '0')}${rib}` }
}
