/** The shapes of accounts, modes of payment and entries in the file of a full export. */
import { describe, expect, test } from 'vitest'
import { forTests } from '../support/for-tests.ts'
import { hostileText } from '../support/ledgers/full-ledger.ts'
import { folders } from '../support/ledgers/tenants.ts'
import { setMadStage } from '../support/stages/mad-stage.ts'

const stage = forTests(setMadStage)

// biome-ignore lint/suspicious/noExplicitAny: three shapes
const accounts = async (): Promise<Map<string, any>> => {
  const { data } = JSON.parse((await stage.file(folders.first)).text)
  return new Map(data.accounts.map((account: { number: string }) => [account.number, account]))
}

const general = 'producerId number name closed counterpartAccount correspondanceAccount'
const company = 'producerId number name closed counterpartAccount company'
const employee = 'producerId number name closed employee'

describe('accounts', () => {
  test('have the shape that the root of their number prescribes', async () => {
    const shapes = [...(await accounts())].map(([number, account]) => [
      number,
      Object.keys(account).join(' '),
    ])
    expect(Object.fromEntries(shapes)).toMatchObject({
      '706000': general,
      '40': general,
      '41': general,
      '4220001': general,
      '401ALPHA': company,
      '401': company,
      '4010': company,
      '4111': company,
      '411DUPONT': company,
      '42100001': employee,
      '421': employee,
      '4210002': employee,
    })
  })

  test('show everything known about a company', async () => {
    const address = {
      addressNumber: '12',
      addressComplement: 'BP 1',
      postalCode: '44000',
      streetName: hostileText,
      streetType: 'rue',
      locatingIndex: 'bis',
      fullName: `12 bis rue ${hostileText}`,
      fullname: `12 bis rue ${hostileText}`,
      city: hostileText,
      country: 'FRANCE',
    }
    const found = (await accounts()).get('401ALPHA').company
    expect(found).toEqual({
      name: hostileText,
      SIREN: '123456789',
      CEO: hostileText,
      payment: { producerId: '55', code: 'PRE' },
      address,
      ape: { producerId: '1', code: '62.01Z', name: hostileText },
      vat: { producerId: '83', customerReferenceCode: 'Z', rate: 0 },
      IBANs: ['FR76', hostileText, ''],
      contacts: [
        { firstname: 'Ça', lastname: 'Né', phoneNumber: '+33', role: null, email: 'a@b.fr' },
        { firstname: null, lastname: null, phoneNumber: null, role: 'x', email: null },
      ],
      miscellaneous: { referent: 'R', language: 'fr', group: 'G', archived: true },
    })
    expect(Object.keys(found).join(' ')).toBe(
      'name SIREN CEO payment address ape vat IBANs contacts miscellaneous',
    )
  })

  test('show a company with no details under the name of its account', async () => {
    expect((await accounts()).get('401').company).toEqual({
      name: 'Fournisseurs',
      SIREN: null,
      CEO: null,
      payment: null,
      address: null,
      ape: null,
      vat: null,
      IBANs: [],
      contacts: [],
      miscellaneous: null,
    })
    const { name, address } = (await accounts()).get('4010').company
    expect([name, address.fullName]).toEqual(['', null])
  })
})

describe('accounts', () => {
  test('show an employee, and a doubtful account even without other details', async () => {
    const found = await accounts()
    const { employee: full } = found.get('42100001')
    expect(Object.keys(full).join(' ')).toBe(
      'firstName lastName email phoneNumber phoneNumberBis NIR profession payment address IBANs contacts miscellaneous',
    )
    expect(full.payment).toEqual({ producerId: '57', code: 'CHQ' })
    expect(Object.entries(full.miscellaneous).slice(0, 4)).toEqual(
      Object.entries({ referent: 'R', language: null, group: null, archived: false }),
    )
    expect(full.miscellaneous.doubtfulAccount.number).toBe('411DUPONT')
    expect(found.get('421').employee.miscellaneous.doubtfulAccount.number).toBe('60')
    expect(found.get('4210002').employee.miscellaneous).toBeNull()
  })
})

test('payment modes have their documented names', async () => {
  const { data } = JSON.parse((await stage.file(folders.first)).text)
  const shown = data.payments.map((payment: { [key: string]: unknown }) => Object.values(payment))
  const property = (code: string) => ({ code })
  expect(shown).toEqual([
    ['51', 'Carte Bleue', 'CB', property('CB')],
    ['52', 'Virement', 'VIR', property('VIRT')],
    ['53', 'Espèce', 'ESP', property('ESP')],
    ['54', 'Chèque', 'CHQ', property('CHQ')],
    ['55', 'Prélèvement', 'PRE', property('PRLV')],
    ['56', 'Lettre de change', 'LCR', property('LCR')],
    ['57', 'Chèque', 'CHQ', property('CHQ')],
  ])
})

test('entries include drafts and entries without movements', async () => {
  const { data } = JSON.parse((await stage.file(folders.first)).text)
  // biome-ignore lint/suspicious/noExplicitAny: as parsed
  const entries: any[] = data.entries
  const dates = entries.map((entry) => entry.additionalProducerProperties.validationDate)
  expect(dates.filter((date) => date === null).length).toBeGreaterThan(10)
  expect(dates.filter((date) => /^\d{4}-\d\d-\d\d$/.test(date)).length).toBeGreaterThan(10)
  const empty = entries.filter((entry) => entry.movements.length === 0)
  expect(empty.map((entry) => entry.producerId)).toEqual(['1', '2', '500', '700', '4000'])
  expect(Object.keys(entries[0]).join(' ')).toBe(
    'producerId attachments date dueDate journal currency movements additionalProducerProperties',
  )
  const movement = entries.find((entry) => entry.movements.length > 0).movements[0]
  expect(Object.keys(movement).join(' ')).toBe(
    'producerId description dueDate freeNumber invoiceNumber value attachments account payment analytics lettering',
  )
  const foreign = entries.filter((entry) => 'rate' in entry.currency)
  expect(new Set(foreign.map((entry) => entry.currency.rate))).toEqual(new Set([1.0832, 0.000001]))
})
