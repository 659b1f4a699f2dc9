/** The encoding of a FEC: how French words decide it, what they cannot decide, and what --encoding refuses. */
import { readFileSync } from 'node:fs'
import iconv from 'iconv-lite'
import { expect, test } from 'vitest'
import {
  checkEncoding,
  detectEncoding,
  type EncodingChoice,
  type FecEncoding,
  fecEncodings,
} from '../../../src/formats/fec/encoding.ts'
import type { FecError } from '../../../src/formats/fec/fields.ts'
import { type FecLine, parseFec } from '../../../src/formats/fec/parse.ts'
import { fecFile } from '../../support/ledgers/fec-file.ts'
import { haveRealLedgers, realLedgers } from '../../support/ledgers/real-ledgers.ts'

async function* inPieces(file: Buffer, bytes = 10_000): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.length; at += bytes) yield file.subarray(at, at + bytes)
}

/** A ledger with these labels, and no other character beyond ASCII. */
function ledgerOf(labels: readonly string[], encoding: FecEncoding): Buffer {
  const rows = labels.map((label, at) => ({
    ...{ JournalCode: 'HA', JournalLib: 'Achats', EcritureNum: `${at}`, EcritureDate: '20230131' },
    ...{ CompteNum: '606000', CompteLib: 'Fournitures', PieceRef: `F-${at}`, PieceDate: '20230131' },
    ...{ EcritureLib: label, Debit: '12,00', Credit: '0,00' },
  }))
  return fecFile(rows, { encoding: encoding === 'utf-8' ? 'utf8' : encoding })
}

function inQuotes(file: Buffer): Buffer {
  const lines = file.toString('latin1').trimEnd().split('\n')
  const quoted = lines.map((line) => `"${line.split('\t').join('"\t"')}"`)
  return Buffer.from(`${quoted.join('\n')}\n`, 'latin1')
}

async function read(file: Buffer): Promise<EncodingChoice & { lines: FecLine[] }> {
  const choice = await detectEncoding(inPieces(file))
  return { ...choice, lines: (await Array.fromAsync(parseFec(inPieces(file), choice.encoding))).flat() }
}

const texts = [
  ...['Facture', 'VENTES 10 %', "L'ACOMPTE 50 EUR"],
  ...[
    'ABONNEMENT 10 €',
    'ABONNEMENT 10€',
    '10,50€ TTC',
    '1 500 €/mois',
    '€ 12,00',
    '12 K€',
    'BUDGET 30 k€ HT',
  ],
  ...['MONTANT EN €', 'TOTAL : 100€HT', 'Remise (5 €)', '£ 100', '100 £'],
  ...[
    'LOYER – MARS',
    'LOYER — MARS',
    'LOYER – 01/2024',
    'Paris–Lyon',
    '2023–2024',
    'janvier–mars',
    'nord–est',
  ],
  ...['Avoir – remise', '– report', 'aller–retour', '• Frais', 'Frais • divers'],
  ...['L’ACOMPTE', 'L’acompte', 'd’août', 'Prélèvement d’octobre', 'AUJOURD’HUI', '‘Le Fournil’', 'L´EAU'],
  ...[
    '“CAFÉ DE PARIS”',
    'SARL “LE PHARE”',
    '“Le Phare”',
    '„Post“',
    'Le ”Phare”',
    '« Le Phare »',
    '«LE PHARE»',
  ],
  ...[
    '«\u00a0Le Phare\u00a0»',
    '10\u00a0000,00',
    'Facture\u00a0: 12',
    'RÉGLÉ À «CAFÉ»',
    'Réglé «\u00a0Payé\u00a0»',
    `CAFÉ${'\u00a0'.repeat(9)}-`,
    '12\u00a0%',
  ],
  ...['Fournitures…', 'FOURNITURES…', 'Divers, etc…', 'etc …', 'ACTIVITÉ…', 'Windows™', 'Adobe®', '5 ‰'],
  ...[
    'ŒUVRES SOCIALES',
    'Œuvres sociales',
    'œuvres sociales',
    'CŒUR DE VILLE',
    'cœur de ville',
    'MAIN D’ŒUVRE',
  ],
  ...['ex æquo', 'curriculum vitæ', 'Lætitia', 'LÆTITIA', "L'HAŸ-LES-ROSES", "L'Haÿ-les-Roses"],
  ...[
    'ÉLECTRICITÉ',
    'Électricité',
    'électricité',
    'RÉGLÉ À PÂQUES',
    'REPORT À NOUVEAU',
    'À NOUVEAU',
    'ACTIVITÉ »',
  ],
  ...[
    'PROGRÈS',
    'SYSTÈME',
    'CRÈME',
    'BARÈME',
    'PARALLÈLE',
    'PÈRE NOËL',
    'HÔTEL',
    'IMPÔTS',
    'CONTRÔLE',
    'RHÔNE',
    'VENDÔME',
  ],
  ...[
    'FRANÇAIS',
    'REÇU',
    'ÇA',
    'AOÛT',
    'COÛT',
    'DÛ',
    'OÙ',
    'MAÎTRE',
    'ÎLE-DE-FRANCE',
    'NAÏF',
    'CITROËN',
    'FÊTE',
  ],
  ...[
    'Report à nouveau',
    'à régler',
    'A régler à Noël',
    'Hôtel',
    'Français',
    'reçu',
    'Ça',
    'août',
    'dû',
    'mûr',
    'où',
  ],
  ...[
    'Maître',
    'île',
    'égoïste',
    'Noël',
    'fête',
    'être',
    'Forêt',
    'pâte',
    'Âge',
    'âge',
    'voilà',
    'là-bas',
    'au-delà',
  ],
  ...[
    'n° 12',
    'N° 12',
    'n°12',
    'FACT.N°A12',
    'Réparat° moteur',
    '50 m³',
    '½ journée',
    '1½',
    '5 µg',
    '5 × 3',
    '§ 12',
  ],
  ...[
    '2ème rappel',
    '1ère échéance',
    'SOCIéTé GéNéRALE',
    'Müller',
    'MÜLLER',
    'KÖNIG',
    'España',
    'García',
    'Škoda',
  ],
  ...['PAYé', 'Virement à', '… suite', 'Achats … ventes', 'ACHATS … VENTES', '10 ¤', '¥ 100'],
  ...['Málaga', 'SÃO PAULO', 'MARTÍNEZ', 'Malmö', 'Società'],
]

/** Texts whose words cannot decide the encoding: another reading is as likely in a French ledger, or likelier. */
const undecidable: Record<string, string> = {
  'cp850: PAYé': 'a small é in capitals has the byte of ‚, which some type as a comma',
  'cp850: Virement à': 'à at the end of a label that was cut has the byte of an ellipsis',
  'windows-1252: … suite': 'an ellipsis before a small letter has the byte of à: "à suite"',
  'windows-1252: Achats … ventes': 'an ellipsis between small words has the byte of à: "Achats à ventes"',
  'windows-1252: 10 ¤': 'has the byte of the euro in ISO-8859-15, and a ledger has no ¤',
  'cp850: 10 ¤': 'has the byte of Ï in Windows-1252, and a ledger has no ¤',
  'cp850: ¥ 100': 'has the byte of ¾ in Windows-1252: "¾ 100"',
  'cp850: ex æquo': 'has the byte of an opening quote in Windows-1252: "ex ‘quo"',
  'cp850: Málaga': 'has the byte of the no-break space in Windows-1252: "M laga"',
  'cp850: SÃO PAULO': 'not French; "SÇO PAULO" in Windows-1252 might be',
  'cp850: MARTÍNEZ': 'as foreign as "MARTÖNEZ" in Windows-1252',
  'cp850: Malmö': 'has the byte of a closing quote in Windows-1252: "Malm”"',
  'cp850: Società': 'French has no such à; in Windows-1252 it is an ellipsis: "Societ…"',
}

const plainLines = ledgerOf(
  Array.from({ length: 1000 }, (_, at) => `Facture ${at} du mois, reste 10 EUR`),
  'utf-8',
)
const middle = plainLines.indexOf('\n', plainLines.length / 2) + 1

test.each([
  ['alone', (file: Buffer) => file],
  ['in quotes', inQuotes],
  [
    'in 1,000 plain lines',
    (file: Buffer) =>
      Buffer.concat([
        plainLines.subarray(0, middle),
        file.subarray(file.indexOf('\n') + 1),
        plainLines.subarray(middle),
      ]),
  ],
])('each French text is read back from each encoding, %s', async (_, mixed) => {
  const wrong: string[] = []
  let cases = 0
  for (const text of texts)
    for (const encoding of fecEncodings) {
      if (iconv.decode(iconv.encode(text, encoding), encoding) !== text) continue
      cases += 1
      const file = ledgerOf([text], encoding)
      const choice = await detectEncoding(inPieces(mixed(file)))
      const [line] = (await Array.fromAsync(parseFec(inPieces(file), choice.encoding))).flat()
      if (line!.description !== text) wrong.push(`${encoding}: ${text}`)
    }
  expect([texts.length, cases]).toEqual([154, 527])
  expect(wrong.toSorted()).toEqual(Object.keys(undecidable).toSorted())
})

const dashes: string[] = Array(200).fill('LOYER – MARS')

test.each([
  ['one word against many dashes', 'windows-1252', [...dashes, 'ÉLECTRICITÉ']],
  ['one word before many dashes', 'utf-8', ['ÉLECTRICITÉ', ...dashes]],
  ['one word against many euros', 'windows-1252', [...Array<string>(200).fill('ABONNEMENT 10 €'), 'Réglé']],
  ['words against a label that reads as another', 'windows-1252', ['Achats … ventes', 'Réglé', 'Été']],
  ['words against a cut label', 'cp850', ['Virement à', 'SÃO PAULO', 'Malmö', 'Téléphone', 'Société']],
  ['words against the euro of another encoding', 'windows-1252', ['10 ¤', '½ mois', '¼ mois']],
  ['ligatures of ISO-8859-15', 'iso-8859-15', ['SŒUR', 'Main d œuvre', '10 €']],
] as const)('every line counts, but each word once: %s in %s', async (_, encoding, labels) => {
  const { lines } = await read(ledgerOf(labels, encoding))
  expect(lines.map(({ description }) => description)).toEqual(labels)
})

test('the encoding is Windows-1252 if words do not decide, or if all encodings read the same text', async () => {
  for (const text of ['ACHATS … VENTES', 'ÉTÉ', 'été', 'n° 12'])
    expect((await read(ledgerOf([text], 'windows-1252'))).encoding, text).toBe('windows-1252')
})

test.each([
  ['plain text', 'utf-8', ['Facture'], undefined],
  ['UTF-8', 'utf-8', ['Été – 12 €'], undefined],
  ['a box in CP850, which no ledger has', 'windows-1252', ['ÉTÉ'], undefined],
  ['an É of CP850', 'cp850', ['ÉTÉ'], undefined],
  [
    'dashes',
    'windows-1252',
    ['Facture', 'LOYER – MARS'],
    { line: 3, text: 'LOYER – MARS', otherEncoding: 'cp850', otherText: 'LOYER û MARS' },
  ],
  [
    'the most doubtful of several',
    'windows-1252',
    ['LOYER – MARS', 'ACHATS … VENTES', 'PRIX 5 €'],
    { line: 3, text: 'ACHATS … VENTES', otherEncoding: 'cp850', otherText: 'ACHATS à VENTES' },
  ],
  [
    'an accent of CP850',
    'cp850',
    ['Réglé'],
    { line: 2, text: 'Réglé', otherEncoding: 'windows-1252', otherText: 'R‚gl‚' },
  ],
  [
    'a ligature of ISO-8859-15',
    'iso-8859-15',
    ['VENTES', 'cœur'],
    { line: 3, text: 'cœur', otherEncoding: 'windows-1252', otherText: 'c½ur' },
  ],
] as const)('an example line shows another possible reading: %s', async (_, encoding, labels, example) => {
  const choice = await detectEncoding(inPieces(ledgerOf(labels, encoding)))
  expect(choice).toEqual(example === undefined ? { encoding } : { encoding, example })
  const marked = Buffer.concat([Buffer.from('\ufeff'), ledgerOf(labels, encoding)])
  expect((await detectEncoding(inPieces(marked))).example).toEqual(example)
})

test('an example line shows where a reading in UTF-8 would differ', async () => {
  const file = ledgerOf(['Été', 'Réglé – 12 €', 'Téléphone'], 'utf-8')
  const euro = file.indexOf('€')
  expect(
    await detectEncoding(inPieces(Buffer.concat([file.subarray(0, euro + 2), file.subarray(euro + 3)]))),
  ).toEqual({
    encoding: 'utf-8',
    example: {
      ...{ line: 3, text: 'Réglé – 12 â‚' },
      ...{ otherEncoding: 'windows-1252', otherText: 'RÃ©glÃ© â€“ 12 â‚' },
    },
  })
})

test('bytes in a file in UTF-8 that belong to no encoding are kept distinct from each other', async () => {
  const file = ledgerOf(['Réglé – 12 €', 'Téléphone', 'M?LL?'], 'utf-8')
  const bytes = Buffer.from(file.toString('latin1').replace('M?LL?', 'M\x81LL\x9d'), 'latin1')
  const { encoding, lines } = await read(bytes)
  expect([encoding, lines[2]!.description]).toEqual(['utf-8', 'M\x81LL\x9d'])
})

test.each([
  ['utf-8', 'windows-1252', 'Réglé – 12', 'Réglé – 12'],
  ['utf-8', 'cp850', 'RÉGLÉ', 'R\x90GL\x90'],
  ['windows-1252', 'cp850', 'RÉGLÉ', 'R\ufffdGL\ufffd'],
  ['iso-8859-15', 'windows-1252', '10 €', '10 \x80'],
] as const)(
  'bytes outside the named encoding are refused: %s, in truth %s',
  async (named, encoding, label, shown) => {
    for (const before of [[], Array<string>(3000).fill('Facture')]) {
      const file = ledgerOf([...before, 'Facture', label, 'Facture', label], encoding)
      const refused = await checkEncoding(inPieces(file), named, true).catch((error: unknown) => error)
      const at = { column: 'EcritureLib', value: shown, message: expect.stringContaining(`text in ${named}`) }
      expect((refused as FecError).problems).toEqual([
        { line: before.length + 3, ...at },
        { line: before.length + 5, ...at },
      ])
    }
  },
)

test('the column of refused bytes is counted in fields, also in quotes', async () => {
  const file = inQuotes(ledgerOf(['Facture', 'RÉGLÉ'], 'windows-1252'))
  const separated = Buffer.from(file.toString('latin1').replaceAll('Fournitures', 'A\tB'), 'latin1')
  const refused = await checkEncoding(inPieces(separated), 'utf-8', true).catch((error: unknown) => error)
  expect((refused as FecError).problems).toMatchObject([{ line: 3, column: 'EcritureLib', value: 'RÉGLÉ' }])
})

test('a named encoding is used if the bytes belong to it, even if the words suggest another', async () => {
  for (const encoding of fecEncodings) {
    const file = ledgerOf(['LOYER'], 'utf-8')
    await checkEncoding(inPieces(file), encoding, true)
  }
  const file = ledgerOf(['ABONNEMENT 10 €', 'Été'], 'windows-1252')
  await checkEncoding(inPieces(file), 'cp850', true)
  await expect(checkEncoding(inPieces(Buffer.alloc(0)), 'cp850', true)).rejects.toThrow('the file is empty')
  await expect(checkEncoding(inPieces(Buffer.from('a\nb\0')), 'utf-8', true)).rejects.toThrow(
    'line 2, file "0x00"',
  )
})

test.skipIf(!haveRealLedgers)('real ledgers are read back unchanged, also from other encodings', async () => {
  for (const { file } of realLedgers) {
    const bytes = readFileSync(file)
    expect(await detectEncoding(inPieces(bytes))).toEqual({ encoding: 'utf-8' })
    const { lines } = await read(bytes)
    for (const encoding of ['windows-1252', 'iso-8859-15', 'cp850'] as const) {
      const written = iconv.encode(bytes.toString().replace('\ufeff', ''), encoding)
      const expected = await Array.fromAsync(parseFec(inPieces(written), encoding))
      expect((await read(written)).lines).toEqual(expected.flat())
      expect(expected.flat()).toHaveLength(lines.length)
    }
  }
})
