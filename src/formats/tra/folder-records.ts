/**
 * Renders records of the file, the folder and its settings (docs/spec/tra.md#parameters): one row to one line of bytes.
 */

import type { Buffer } from 'node:buffer'
import type { FolderView } from '../items/accounting-folder.ts'
import type { Address } from '../items/accounts/address.ts'
import type { ExerciceView } from '../items/exercice.ts'
import { inUnits } from '../minor-units.ts'
import { paymentMode } from '../payment.ts'
import type { CollectiveAccounts } from './accounts/nature.ts'
import { countryCode } from './country-code.ts'
import { dayText, LineWriter } from './layouts/fixed-width.ts'
import { layouts } from './layouts/layouts.ts'

/** Code of the only establishment, which every entry line cites. */
export const establishmentCode = '001'
/** Code of the only VAT regime. */
const regimeCode = 'FRA'
/** Francs in a euro, fixed for ever. */
const francsPerEuro = '6,55957'

export interface TraFileOf {
  /** DOS: the whole folder. JRL: a part of its entries. */
  type: 'DOS' | 'JRL'
  /** `YYYY-MM-DDTHH:MM` in the time zone of the platform. */
  generatedAt: string
  firmName: string
}

export function headerLine({ type, generatedAt, firmName }: TraFileOf): Buffer {
  return new LineWriter(layouts.HEADER)
    .text('FIXE', '***')
    .text('IDENTIFIANT', 'S5')
    .text('ORIGINE FICHIER', 'EXP')
    .text('TYPE FICHIER', type)
    .text('FORMAT', 'ETE')
    .number('VERSION', '011')
    .moment('DATE/HEURE', generatedAt)
    .text('UTILISATEUR', 'Grandlivre')
    .text('RAISON SOCIALE', firmName)
    .number('SOUSVERSION', '001')
    .text('SO_READYGUID', '-')
    .line()
}

/** docs/spec/tra.md#ps1 */
export function ps1Line(folder: FolderView): Buffer {
  const { address } = folder
  return new LineWriter(layouts.PS1)
    .text('NOM', folder.name)
    .text('ADRESSE1', address.streetName)
    .text('ADRESSE2', address.complement)
    .text('CODEPOSTAL', address.postalCode)
    .text('VILLE', address.city)
    .text('PAYS', countryCode(address.country))
    .text('TELEPHONE', folder.contactPhoneNumber)
    .text('EMAIL', folder.contactMail)
    .text('SIRET', folder.siret)
    .text('RCS', folder.rcsName)
    .amount('CAPITAL', BigInt(folder.capital))
    .line()
}

/** Settings of one of the first five axes, in the order of their ids. */
export interface AxisSettings {
  /** Length of the longest section code; 0 for an axis without sections. */
  codeLength: number
  defaultSectionCode: string | null
}

export interface Ps2Of {
  /** Length of the longest number of a general and of a third-party account; 0 if there is none. */
  generalLength: number
  thirdPartyLength: number
  axes: readonly AxisSettings[]
  /** Number of a 471 account. */
  suspenseAccount: string | null
}

export function ps2Line({ generalLength, thirdPartyLength, axes, suspenseAccount }: Ps2Of): Buffer {
  const writer = new LineWriter(layouts.PS2)
    .number('LGGEN', between(generalLength, 6, 17))
    .text('BOURREGEN', '0')
    .number('LGAUX', between(thirdPartyLength, 6, 17))
    .text('BOURREAUX', '0')
    .key('GENATTEND', suspenseAccount)
  for (let rank = 1; rank <= axesMax; rank++) {
    const axis = axes[rank - 1]
    writer
      .number(`LGSEC${rank}`, between(axis?.codeLength ?? 0, 3, 17))
      .text(`BOURRESEC${rank}`, '0')
      .key(`SECT${rank}ATTEND`, axis?.defaultSectionCode)
  }
  return writer.line()
}

/** A TRA file has no columns for a sixth axis. */
export const axesMax = 5

function between(length: number, least: number, most: number): string {
  return String(Math.min(most, Math.max(least, length)))
}

/** @param openingJournalCode of the À Nouveaux journal, in three characters */
export function ps3Line(openingJournalCode: string | null, collectives: CollectiveAccounts): Buffer {
  return new LineWriter(layouts.PS3)
    .key('JALOUVRE', openingJournalCode)
    .key('CLIDEFAUT', collectives.get('customer')?.number)
    .key('FOUDEFAUT', collectives.get('supplier')?.number)
    .key('SALDEFAUT', collectives.get('employee')?.number)
    .line()
}

export interface Ps5Of {
  /**
   * The folder's accounts 476 and 477, if it has them, for losses and gains of conversion. Accounts of classes 6 and 7
   * are not allowed here, as they are open to analytic breakdown (p. 16). No type of journal is one of conversions, so
   * JALECC stays blank.
   */
  conversionLossAccount: string | null
  conversionGainAccount: string | null
  hasAxes: boolean
}

/** Books are kept in euro. */
export function ps5Line({ conversionLossAccount, conversionGainAccount, hasAxes }: Ps5Of): Buffer {
  return new LineWriter(layouts.PS5)
    .text('DEVISE', 'EUR')
    .number('DECDEVISE', '2')
    .text('TENUEEURO', 'X')
    .key('CPTECCD', conversionLossAccount)
    .key('CPTECCC', conversionGainAccount)
    .text('PARITEEURO', francsPerEuro)
    .key('ETABDEFAUT', establishmentCode)
    .number('PLANREF', '07')
    .text('GEREANA', hasAxes ? 'X' : '-')
    .line()
}

/** @param rank from 1, oldest first */
export function exoLine({ start, end, lettering, closedOn }: ExerciceView, rank: number): Buffer {
  return new LineWriter(layouts.EXO)
    .key('CODE', String(rank).padStart(3, '0'))
    .date('DATEDEBUT', start)
    .date('DATEFIN', end)
    .text('ETATCPTA', closedOn === null ? 'OUV' : 'CDE')
    .text('LIBELLE', `Exercice au ${dayText(end)}`)
    .text('ETATANO', openingState(lettering))
    .text('DATECREATION', closedOn && dayText(closedOn))
    .line()
}

/**
 * Opening balances in detail (H) or as sums by account (OAN): ETATANO of a year and ECRANOUVEAU of its opening entries.
 */
export function openingState(lettering: string): 'H' | 'OAN' {
  return lettering === 'MONO' ? 'H' : 'OAN'
}

export function etbLine({ name, address }: FolderView): Buffer {
  return new LineWriter(layouts.ETB)
    .key('CODE', establishmentCode)
    .text('LIBELLE', name)
    .text('ADRESSE1', street(address))
    .text('ADRESSE2', address.complement)
    .text('CODEPOSTAL', address.postalCode)
    .text('VILLE', address.city)
    .text('PAYS', countryCode(address.country))
    .line()
}

/** Number, index, type and name, as far as known. */
export function street({ number, locatingIndex, streetType, streetName }: Address): string {
  return [number, locatingIndex, streetType, streetName].filter(Boolean).join(' ')
}

/** @param internalCode code in the database; several may mean one mode, which the file defines once */
export function mdpLine(internalCode: string): Buffer {
  const { code, name } = paymentMode(internalCode)
  return new LineWriter(layouts.MDP)
    .key('CODE', code, 'right')
    .text('LIBELLE', name)
    .key('CATEGORIE', code, 'right')
    .line()
}

/** Paid at once, in that mode. MP1 cites a code of MDP and is right-aligned like it. */
export function mdrLine(internalCode: string): Buffer {
  const { code, name } = paymentMode(internalCode)
  return new LineWriter(layouts.MDR)
    .key('CODE', code)
    .text('LIBELLE', name)
    .text('APARTIRDE', 'ECR')
    .number('PLUSJOUR', '0')
    .number('NBECHE', '1')
    .key('MP1', code, 'right')
    .number('TAUX1', '100,00')
    .line()
}

/**
 * EUR and FRF, then the other currencies.
 * @param foreign euro per unit, as decimal text such as 0.923400, by currency
 */
export function devLines(foreign: ReadonlyMap<string, string>): Buffer[] {
  const others = [...foreign].filter(([code]) => code !== 'EUR' && code !== 'FRF').toSorted()
  return [
    devLine('EUR', '1', true),
    devLine('FRF', francsPerEuro, true),
    ...others.map(([code, rate]) => devLine(code, rate, false)),
  ]
}

const currencyNames = new Intl.DisplayNames('fr', { type: 'currency' })

/** @param isEuro the euro or a currency that it replaced */
function devLine(code: string, rate: string, isEuro: boolean): Buffer {
  const { maximumFractionDigits = 2 } = new Intl.NumberFormat('fr', {
    style: 'currency',
    currency: code,
  }).resolvedOptions()
  return new LineWriter(layouts.DEV)
    .key('CODE', code)
    .text('LIBELLE', currencyNames.of(code) ?? code)
    .number('DECIMALE', String(code === 'FRF' ? 2 : maximumFractionDigits))
    .flag('MONNAIEIN', isEuro)
    .number('PARITEEURO', rate.replace('.', ','))
    .text('CODEISO', code)
    .flag('FONGIBLE', isEuro)
    .line()
}

export function regLine(): Buffer {
  return new LineWriter(layouts.REG).key('CODE', regimeCode).text('LIBELLE', 'France').line()
}

/**
 * @param code in three characters
 * @param rate in hundredths of a percent
 */
export function tvaLine(code: string, rate: number): Buffer {
  const percent = inUnits(BigInt(rate), ',')
  return new LineWriter(layouts.TVA)
    .key('CODE', code)
    .text('LIBELLE', `TVA ${percent} %`)
    .text('REGIMETVA', regimeCode)
    .number('TAUXACHAT', percent)
    .number('TAUXVENTE', percent)
    .line()
}
