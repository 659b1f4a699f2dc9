/** Labels of journal types that partners see, by the code in the database (docs/spec/resources.md#journal). */
export const journalTypeLabels: Readonly<Record<string, string>> = {
  ACH: 'Achat',
  VTE: 'Vente',
  BQ: 'Banque',
  CAISSE: 'Caisse',
  A_EXT: 'À extourner',
  EXT: 'Extourne',
  AN: 'À Nouveaux',
  NFD: 'Note de Frais',
  RBAL: 'Reprise Balance',
  OD: 'OD',
  OD_AUDIT: 'OD Audit',
  OD_PAIE: 'OD Paie',
  OD_LET: 'OD Lettrage',
  OD_DECL_FISCALE: 'OD TVA',
  OD_EXC: 'OD Extracomptable',
}
