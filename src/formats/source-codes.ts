/** Source codes of entries (docs/spec/resources.md#source-codes). */
// biome-ignore format: a table
export const sourceCodes = [
  'E', 'M', 'O', 'EXT', 'L', 'IB', 'P', 'AN', 'OD_TVA', 'OD_CALC_IS', 'OD_ECART', 'REM_BQ', 'RB_MANUEL', 'WORKSHEET',
  'QUADRA', 'CEGID', 'ACD', 'FEC', 'EXCEL', 'RB_JDC', 'RB_QT', 'RB_SB', 'RB_FTP', 'RTVR', 'QUICK', 'ABO', 'PRLV_SEPA',
  'VIRT_SEPA', 'API',
] as const
