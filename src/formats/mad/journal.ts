/** Journal types: the code the database holds, the label partners read (contract, section 4). */
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
