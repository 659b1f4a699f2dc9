/** Identifiers of French books with valid check digits, which partners' software verifies. */
import type { Random } from './random.ts'

/** Nine digits, the last by Luhn's formula. */
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

/** Thirteen digits (sex, year, month, department, commune, number) and a key of two. */
export function nir(random: Random): string {
  const number =
    random.pick(['1', '2']) +
    String(random.integer(60, 99)) +
    String(random.integer(1, 12)).padStart(2, '0') +
    String(random.integer(21, 95)) +
    random.digits(6)
  return number + String(97n - (BigInt(number) % 97n)).padStart(2, '0')
}

export interface BankDetails {
  /** Bank (5), branch (5), account (11), key (2). */
  rib: string
  iban: string
}

export function bankDetails(random: Random): BankDetails {
  const bank = random.pick(['30004', '30003', '20041', '10278', '18206'])
  const branch = random.digits(5)
  const account = random.digits(11)
  const key = 97n - ((89n * BigInt(bank) + 15n * BigInt(branch) + 3n * BigInt(account)) % 97n)
  const rib = bank + branch + account + String(key).padStart(2, '0')
  // The check of an IBAN is computed with FR00 moved to the end, where F is 15 and R is 27.
  const check = 98n - (BigInt(`${rib}152700`) % 97n)
  return { rib, iban: `FR${String(check).padStart(2, '0')}${rib}` }
}
