/** Country codes of TRA files: ISO 3166 alpha-3 (docs/spec/tra.md#ps1). `countries.json` has every country's two and three letters. */
import countries from './countries.json' with { type: 'json' }

/** By code, and by name in French and English, since folders and third parties write any of these. */
const codes = new Map<string, string>()
for (const language of ['en', 'fr']) {
  const names = new Intl.DisplayNames(language, { type: 'region' })
  for (const [two, three] of Object.entries(countries)) codes.set(lettersOf(names.of(two) ?? two), three)
}
for (const [two, three] of Object.entries(countries)) codes.set(two, three).set(three, three)

/** Ignores letter case, accents, blanks and hyphens. A country unknown to ISO gives its first three letters. */
export function countryCode(country: string | null): string {
  const letters = lettersOf(country ?? '')
  return codes.get(letters) ?? letters.slice(0, 3)
}

function lettersOf(name: string): string {
  return name
    .normalize('NFD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '')
}
