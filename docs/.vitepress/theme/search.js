/**
 * What a search does with the words of a question. The index has every word as it is; the question loses those that are on
 * every page, and gains other words for the same thing, also French ones.
 */

const emptyWords = new Set(
  `a about an and are as at be but by can cannot come comes could do does doesn for from get gets getting has have how i if in
  into is it its m me my need no not of on or s should so t that the their them there this to want was we what when where which
  who why will with without would you your`.split(/\s+/),
)

/** Each with all other words of its line. */
const synonyms = new Map(
  `
  abonnement subscription
  arriving received delivered
  backup dump sauvegarde
  balancer haproxy nginx proxy
  cabinet firm
  availability away downtime outage uptime sla
  bandwidth bytes
  brouillard brouillon draft drafts
  consent consentement
  javascript library sdk typescript
  machine machines scale scaling
  clé key
  company dossier folder society
  compte account
  cron night nightly
  csv excel spreadsheet
  deploy install installation production
  duplicate duplicates twice
  employee payroll salaries salary
  erase erased erasure forgotten gdpr rgpd
  erreur error
  exercice fiscal
  fichier file
  grafana metrics monitoring prometheus
  health healthcheck healthz readyz
  incomplete truncated
  introuvable unknown
  invalid mismatch wrong
  jeton token
  lettering lettrage
  memory oom
  mouvement movement
  partenaire partner
  pgbouncer pooler
  page pages pagination paging
  polling waiting
  postgres postgresql
  query sql
  recover restore restaurer
  retries retry
  rolling upgrade update
  rotate rotation
  secrète secret
  signature signed signing verify
  throttle throttled throttling rate
  écriture écritures entry
  `
    .trim()
    .split('\n')
    .map((line) => line.trim().split(' '))
    .flatMap((words) => words.map((word) => [word, words])),
)

/** Those who use the service come before those who build it. */
const weights = [
  [/\/guides\//, 1.3],
  // A code is asked for by its name; guides only mention it.
  [/\/errors\.html/, 1.5],
  [/\/developers\//, 0.5],
  [/\/commands\.html/, 0.7],
]

export const searchOptions = {
  processTerm: (term) => {
    const word = term.toLowerCase()
    return emptyWords.has(word) ? null : (synonyms.get(word) ?? word)
  },
  boostDocument: (address) => weights.find(([path]) => path.test(address))?.[1] ?? 1,
}
