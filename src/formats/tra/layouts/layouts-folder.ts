/** Columns of the records of the file, the folder and its settings. See `column.ts` for the rows. */
import type { Column } from './column.ts'

/** En-tête, p. 9. */
export const header: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M', '***'],
  ['IDENTIFIANT', 4, 2, 'a', 'M', 'S5'],
  ['ORIGINE FICHIER', 6, 3, 'a', 'M', 'EXP'],
  ['TYPE FICHIER', 9, 3, 'a', 'M', 'selection: DOS or JRL'],
  ['FORMAT', 12, 3, 'a', 'M', 'ETE'],
  ['CODE EXO CLOS', 15, 3, 'a', '-'],
  ['DATE BASCULE', 18, 8, 'd', '-', '01011900'],
  ['DATE ARRETE PERIODIQUE', 26, 8, 'd', '-', '01011900'],
  ['VERSION', 34, 3, 'n', 'M', '011'],
  ['N° DOSSIER CAB', 37, 5, 'a', 'M'],
  ['DATE/HEURE', 42, 12, 'd', '-', 'generation, in the time zone of the platform'],
  ['UTILISATEUR', 54, 35, 'a', '-', 'Grandlivre'],
  ['RAISON SOCIALE', 89, 35, 'a', '-', 'firm.name'],
  ['Reprise', 124, 4, 'a', '-'],
  ['N° Dossier', 128, 6, 'a', '-'],
  ['FREQUENCE', 134, 3, 'a', '-'],
  ['SO_CPDATEREFPURGE', 137, 8, 'd', '-', '01011900'],
  ['SOUSVERSION', 145, 3, 'n', 'M', '001'],
  ['SO_NEWANALYTIQUE', 148, 1, 'a', 'M'],
  ['SO_READYGUID', 149, 1, 'a', 'M', '-'],
  ['DAG_GESTAGRICOLE', 150, 1, 'a', '-'],
  ['SO_NOSEQBL', 151, 15, 'a', '-'],
]

/** Paramètres généraux (1), p. 11. */
export const ps1: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['NOM', 7, 35, 'a', '-', 'folder.name'],
  ['ADRESSE1', 42, 35, 'a', '-', 'folder.address.streetName'],
  ['ADRESSE2', 77, 35, 'a', '-', 'folder.address.complement'],
  ['ADRESSE3', 112, 35, 'a', '-'],
  ['CODEPOSTAL', 147, 9, 'a', '-', 'folder.address.postalCode'],
  ['VILLE', 156, 35, 'a', '-', 'folder.address.city'],
  ['PAYS', 191, 3, 'a', '-', 'folder.address.country, ISO 3166 alpha-3'],
  ['TELEPHONE', 194, 25, 'a', '-', 'folder.contact.phoneNumber'],
  ['FAX', 219, 25, 'a', '-'],
  ['TELEX', 244, 25, 'a', '-'],
  ['EMAIL', 269, 35, 'a', '-', 'folder.contact.mail'],
  ['RVA', 304, 35, 'a', '-'],
  ['CONTACT', 339, 35, 'a', '-'],
  ['NIF', 374, 17, 'a', '-'],
  ['SIRET', 391, 35, 'a', '-', 'folder.siret'],
  ['RCS', 426, 17, 'a', '-', 'folder.rcs.name'],
  ['APE', 443, 35, 'a', '-'],
  ['CAPITAL', 478, 20, 'n', '-', 'folder.capital'],
  ['TEXTEJUR', 498, 35, 'a', '-'],
]

/** Paramètres généraux (2), p. 12. */
export const ps2: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['LGGEN', 7, 2, 'n', 'M', 'longest general account number, 6 to 17'],
  ['BOURREGEN', 9, 1, 'a', '-', '0'],
  ['LGAUX', 10, 2, 'n', 'M', 'longest third-party number, 6 to 17'],
  ['BOURREAUX', 12, 1, 'a', '-', '0'],
  ['LGSEC1', 13, 2, 'n', 'M', 'longest section code of axis 1, 3 to 17'],
  ['BOURRESEC1', 15, 1, 'a', '-', '0'],
  ['LGSEC2', 16, 2, 'n', 'M', 'longest section code of axis 2, 3 to 17'],
  ['BOURRESEC2', 18, 1, 'a', '-', '0'],
  ['LGSEC3', 19, 2, 'n', 'M', 'longest section code of axis 3, 3 to 17'],
  ['BOURRESEC3', 21, 1, 'a', '-', '0'],
  ['LGSEC4', 22, 2, 'n', 'M', 'longest section code of axis 4, 3 to 17'],
  ['BOURRESEC4', 24, 1, 'a', '-', '0'],
  ['LGSEC5', 25, 2, 'n', 'M', 'longest section code of axis 5, 3 to 17'],
  ['BOURRESEC5', 27, 1, 'a', '-', '0'],
  ['GENATTEND', 28, 17, 'a', '-', 'account 471, if any'],
  ['CLIATTEND', 45, 17, 'a', '-'],
  ['FOUATTEND', 62, 17, 'a', '-'],
  ['SALATTEND', 79, 17, 'a', '-'],
  ['DIVTATTEND', 96, 17, 'a', '-'],
  ['SECT1ATTEND', 113, 17, 'a', '-', 'axis 1 defaultSection.code'],
  ['SECT2ATTEND', 130, 17, 'a', '-', 'axis 2 defaultSection.code'],
  ['SECT3ATTEND', 147, 17, 'a', '-', 'axis 3 defaultSection.code'],
  ['SECT4ATTEND', 164, 17, 'a', '-', 'axis 4 defaultSection.code'],
  ['SECT5ATTEND', 181, 17, 'a', '-', 'axis 5 defaultSection.code'],
  ['SO_CPPOINTAGESX', 198, 3, 'a', '-'],
  ['SO_POINTAGEJAL', 201, 1, 'a', '-'],
  ['SO_CPPOINTAGESECU', 202, 1, 'a', '-'],
  ['SO_CPPCLSAISIEQTE', 203, 1, 'a', '-'],
  ['SO_CPGLIBELLECOMPL', 204, 1, 'a', '-'],
  ['DFI_DECLARATION', 205, 3, 'a', '-'],
]

/** Paramètres généraux (3), p. 14. */
export const ps3: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CPTBIL', 7, 17, 'a', '-'],
  ['CPTRES', 24, 17, 'a', '-'],
  ['CPTBEN', 41, 17, 'a', '-'],
  ['CPTPER', 58, 17, 'a', '-'],
  ['JALOUVRE', 75, 3, 'a', '-', 'code of the À Nouveaux journal'],
  ['JALFERME', 78, 3, 'a', '-'],
  ['JALBAL', 81, 3, 'a', '-'],
  ['CLIDEFAUT', 84, 17, 'a', '-', 'collective account 411'],
  ['FOUDEFAUT', 101, 17, 'a', '-', 'collective account 401'],
  ['SALDEFAUT', 118, 17, 'a', '-', 'collective account 421'],
  ['DEBDEFAUT', 135, 17, 'a', '-'],
  ['CREDEFAUT', 152, 17, 'a', '-'],
  ['DIVDEFAUT', 169, 17, 'a', '-'],
]

/** Paramètres généraux (5), p. 16. */
export const ps5: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['DEVISE', 7, 3, 'a', 'M', 'EUR'],
  ['DECDEVISE', 10, 1, 'n', 'M', '2'],
  ['TENUEEURO', 11, 1, 'a', 'M', 'X'],
  ['JALECC', 12, 3, 'a', 'M'],
  ['CPTECCD', 15, 17, 'a', 'M', 'account 476, if any'],
  ['CPTECCC', 32, 17, 'a', 'M', 'account 477, if any'],
  ['PARITEEURO', 49, 10, 'a', '-', '6,55957'],
  ['REGIMEDEFAUT', 59, 3, 'a', '-'],
  ['MRDEFAUT', 62, 3, 'a', '-'],
  ['EXIGEDEFAUT', 65, 3, 'a', '-'],
  ['TVADEFAUT', 68, 3, 'a', '-'],
  ['ETABDEFAUT', 71, 3, 'a', '-', '001'],
  ['PLANREF', 74, 2, 'n', '-', '07'],
  ['GEREANA', 76, 1, 'a', '-', 'X where the folder has an axis'],
  ['CROISAXE', 77, 1, 'a', '-'],
  ['CPANODYNA', 78, 1, 'a', '-'],
]

/** Exercice, p. 17. */
export const exo: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M', '001, 002, ... oldest first'],
  ['DATEDEBUT', 10, 8, 'd', 'M', 'exercice.start'],
  ['DATEFIN', 18, 8, 'd', 'M', 'exercice.end'],
  ['ETATCPTA', 26, 3, 'a', 'M', 'exercice.closedOn: OUV or CDE'],
  ['ETATBUDGET', 29, 3, 'a', '-'],
  ['LIBELLE', 32, 35, 'a', '-', 'Exercice au DDMMYYYY'],
  ['ETATANO', 67, 3, 'a', 'M', 'exercice.lettering: MONO H, MULTI OAN'],
  ['DATECREATION', 70, 8, 'a', 'M', 'exercice.closedOn'],
]

/** Etablissement, p. 20. */
export const etb: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M', '001'],
  ['LIBELLE', 10, 35, 'a', '-', 'folder.name'],
  ['ADRESSE1', 45, 35, 'a', '-', 'folder.address: number, locatingIndex, streetType, streetName'],
  ['ADRESSE2', 80, 35, 'a', '-', 'folder.address.complement'],
  ['ADRESSE3', 115, 35, 'a', '-'],
  ['CODEPOSTAL', 150, 9, 'a', '-', 'folder.address.postalCode'],
  ['VILLE', 159, 35, 'a', '-', 'folder.address.city'],
  ['PAYS', 194, 3, 'a', '-', 'folder.address.country, ISO 3166 alpha-3'],
  ['TELEPHONE', 197, 25, 'a', '-'],
  ['TELEX', 222, 25, 'a', '-'],
  ['SIRET', 247, 17, 'a', '-'],
  ['APE', 264, 5, 'a', '-'],
]

/** Mode de paiement, p. 21. */
export const mdp: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M', 'payment.code'],
  ['LIBELLE', 10, 35, 'a', 'M', 'payment.name'],
  ['CATEGORIE', 45, 3, 'a', '-', 'payment.code'],
  ['CODEACCEPT', 48, 3, 'a', '-'],
  ['EDTLC', 51, 1, 'b', '-'],
  ['EDTBOR', 52, 1, 'b', '-'],
  ['CONDITIONM', 53, 1, 'a', '-'],
  ['MONTANT', 54, 20, 'n', '-'],
  ['MODEREMPLACE', 74, 3, 'a', '-'],
  ['GENERAL', 77, 17, 'a', '-'],
]

/** Condition de règlement, p. 22. */
export const mdr: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M', 'payment.code'],
  ['LIBELLE', 10, 35, 'a', 'M', 'payment.name'],
  ['APARTIRDE', 45, 3, 'a', '-', 'ECR'],
  ['PLUSJOUR', 48, 3, 'n', '-', '0'],
  ['ARRONDIJOUR', 51, 3, 'a', '-'],
  ['NBECHE', 54, 2, 'n', '-', '1'],
  ['SEPAREPAR', 56, 3, 'a', '-'],
  ['MONTANTMIN', 59, 20, 'n', '-'],
  ['REMPLACEMIN', 79, 3, 'a', '-'],
  ['MP1', 82, 3, 'a', '-', 'payment.code'],
  ['TAUX1', 85, 6, 'n', '-', '100,00'],
  ['MP2', 91, 3, 'a', '-'],
  ['TAUX2', 94, 6, 'n', '-'],
  ['MP3', 100, 3, 'a', '-'],
  ['TAUX3', 103, 6, 'n', '-'],
  ['MP4', 109, 3, 'a', '-'],
  ['TAUX4', 112, 6, 'n', '-'],
  ['MP5', 118, 3, 'a', '-'],
  ['TAUX5', 121, 6, 'n', '-'],
  ['MP6', 127, 3, 'a', '-'],
  ['TAUX6', 130, 6, 'n', '-'],
  ['MP7', 136, 3, 'a', '-'],
  ['TAUX7', 139, 6, 'n', '-'],
  ['MP8', 145, 3, 'a', '-'],
  ['TAUX8', 148, 6, 'n', '-'],
  ['MP9', 154, 3, 'a', '-'],
  ['TAUX9', 157, 6, 'n', '-'],
  ['MP10', 163, 3, 'a', '-'],
  ['TAUX10', 166, 6, 'n', '-'],
  ['MP11', 172, 3, 'a', '-'],
  ['TAUX11', 175, 6, 'n', '-'],
  ['MP12', 181, 3, 'a', '-'],
  ['TAUX12', 184, 6, 'n', '-'],
]

/** Devise, p. 24. */
export const dev: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M', 'entry.currency.code'],
  ['LIBELLE', 10, 35, 'a', 'M', 'name of the currency'],
  ['SYMBOLE', 45, 3, 'a', '-'],
  ['FERME', 48, 1, 'b', '-'],
  ['DECIMALE', 49, 1, 'n', 'M', 'decimals of the currency'],
  ['QUOTITE', 50, 6, 'n', '-'],
  ['MONNAIEIN', 56, 1, 'b', 'M', 'X for the euro and currencies that it replaced'],
  ['PARITEEURO', 57, 20, 'n', 'M', 'entry.currency.rate'],
  ['CODEISO', 77, 3, 'a', '-', 'entry.currency.code'],
  ['FONGIBLE', 80, 1, 'b', 'M', 'X for the euro and the franc'],
  ['CPTLETTRED', 81, 17, 'a', '-'],
  ['CPTLETTREC', 98, 17, 'a', '-'],
  ['CPTDEVD', 115, 17, 'a', '-'],
  ['CPTDEVC', 132, 17, 'a', '-'],
  ['MAXDEBIT', 149, 20, 'n', '-'],
  ['MAXCREDIT', 169, 20, 'n', '-'],
]

/** Régime de TVA, p. 25. */
export const reg: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M', 'FRA'],
  ['LIBELLE', 10, 35, 'a', 'M', 'France'],
]

/** Taux de TVA, p. 26. */
export const tva: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M', 'vat.code'],
  ['LIBELLE', 10, 35, 'a', 'M', 'vat.rate in words'],
  ['REGIMETVA', 45, 3, 'a', '-', 'FRA'],
  ['TAUXACHAT', 48, 10, 'n', '-', 'vat.rate'],
  ['TAUXVENTE', 58, 10, 'n', '-', 'vat.rate'],
  ['CPTTVAACHATD', 68, 17, 'a', '-'],
  ['CPTTVAVENTED', 85, 17, 'a', '-'],
  ['CPTTVAACHATE', 102, 17, 'a', '-'],
  ['CPTTVAVENTEE', 119, 17, 'a', '-'],
]

/** Compteurs (Souches), p. 28. */
export const sou: readonly Column[] = [
  ['FIXE', 1, 3, 'a', 'M'],
  ['IDENTIFIANT', 4, 3, 'a', 'M'],
  ['CODE', 7, 3, 'a', 'M'],
  ['LIBELLE', 10, 35, 'a', 'M'],
  ['NUMEROPIECE', 45, 15, 'n', '-'],
  ['SIMULATION', 60, 1, 'b', '-'],
  ['OD ANALYTIQUE', 61, 1, 'b', '-'],
  ['RELEVE', 62, 1, 'b', '-'],
]
