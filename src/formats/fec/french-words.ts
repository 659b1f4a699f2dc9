/**
 * Grades how likely a word is in a French ledger. The grades tell encodings apart in which nearly every byte is a
 * character: the bytes of `LOYER – MARS` in Windows-1252 are `LOYER û MARS` in CP850, but no French word is a lone û.
 *
 * Letters are graded by the case of their neighbours and by where French uses them. An é may stand anywhere. Other
 * letters have narrower places where their bytes are doubtful: Ô of Windows-1252 is È in CP850; û and – share a byte,
 * and so do à and …, so ô, û and à are accepted only in listed words. Signs are graded by where people type them.
 */

/** A word gets the worst grade of its characters: a single impossible character makes the whole word impossible. */
const usual = 2
/** For example a small é among capitals, a dash between letters, or an ellipsis between blanks. */
const possible = 0
/** A letter that French does not use at this place, as in foreign names. */
const foreign = -1
/** For example a sign within letters, a capital after a small letter, a control character, or a box. */
const impossible = -3

/**
 * A letter beside letters of its own case, or a capital before small letters. Digits are not beside letters, except in
 * `2ème`.
 */
const casePlaces = [
  /(?<!\p{L}\p{Lu}|\d)\p{Ll}(?![\p{Lu}\d]| #)/u,
  /(?<=[a0] )\p{Ll}(?= #)/u,
  /(?<=\p{Lu})\p{Lu}(?![\p{Ll}\d])/u,
  /(?<![\p{L}\d])\p{Lu}(?!\d)/u,
  /(?<=\d)[èÈ]/u,
]

/** Also used for capitals: words are matched in small letters. */
const letterPlaces = [
  /é/u,
  /(?<=\p{L})[âêî](?=\p{L})|(?<!\p{L})(?:â[gmnpt]|êt|îl)/u,
  /(?<=\p{L})è[^\P{L}aeiouyhwk]|(?<!\p{L})è[rs]|(?<=\d)è/u,
  /(?<!\p{L})à(?!\p{L}| {2})|(?<=(?<!\p{L})(?:l|voil|del|hol|ç|deç|déj))à(?!\p{L})/u,
  /(?<=\p{L})ç[aouâôûà]|(?<!\p{L})ç[aà]/u,
  /(?<=\p{L}[aeou])ë|(?<=[aeéou])ï|(?<=[ao])ÿ(?!\p{L})/u,
  /(?<=(?<!\p{L})[chnrtv]?|trec|cl)ôt|(?<=p)ôts?(?!\p{L})|(?<=t)ôt(?!\p{L})/u,
  /(?<=[fdt]r|ge|nr|(?<!\p{L})[dmrt])ôl|(?<=p)ôles?(?!\p{L})|(?<=h)ôp|(?<=all)ô(?!\p{L})/u,
  /(?<=[np]t|pl|dr|nd|ch|in|(?<!\p{L})(?:ar|[cdm]))ôm|(?<=rh|a|pr|tr|ic|aum|(?<!\p{L})(?:c|py))ôn/u,
  /û(?:t|[mt]es)(?!\p{L})|(?<=[acgv]o|cro)ût|(?<=aff|fl)ût|(?<=so)ûl|(?<=br)ûl|(?<=b)ûch|(?<=je)ûn/u,
  /(?<=(?<!\p{L})(?:in)?d)û(?:m|e?s?(?!\p{L}))|(?<=(?<!\p{L})(?:re)?cr)û(?!\p{L})|(?<=(?<!\p{L})[sm]|qu?)ûr/u,
  /(?<=(?<!\p{L})o)ù(?!\p{L})/u,
  /œ[uisdnct]|(?<=c)œl|(?<=[cl])æt|æquo|(?<=vit)æ|(?<!\p{L})µ[gls]/u,
]

const signPlaces = [
  /(?<![\p{L}])€(?!\p{L})|(?<=(?<!\p{L})[kKM]|HT|TTC)€(?!\p{L})|(?<=\d)€(?=HT|TTC)/u,
  /(?<=[ \d])[–—](?=[ \d])|(?<= )•/u,
  /(?<=\p{L})[’´](?=[aeiouyhAEIOUYHÀ-ÖØ-öø-ÿŒœ])|(?<= )‘(?=[\p{L}\d])/u,
  /(?<![\p{L}\d])[“„‹«]|(?<=[^ ])[”›](?![\p{L}\d])|»(?![\p{L}\d])/u,
  /(?<=[\p{L}\d.)!?»”’])(?<!(?<!\p{L})(?:[lL]|[vV]oil|del|hol))…(?![\p{L}\d])/u,
  /(?<=[\p{L}\d])[™®](?!\p{L})|(?<=[nN])[°º]|(?<=[\p{L}\d ])°(?!\p{L})|(?<=\d)º/u,
  /(?<=[mM\d])[²³](?!\p{L})|(?<!\p{L})[½¼¾§£¥×±‰](?!\p{L})/u,
  /\u00a0(?!\p{Ll})|(?<!\p{Ll})\u00a0/u,
]

const possibleSigns = [
  /[–—’‘…•·´©\u00a0]|(?<!\p{L})[€“”„‹›‚]|[€“”„‹›](?!\p{L})/u,
  /(?<=\p{Lu}|\d)‚(?!\p{L})|(?<=\d)¢/u,
]

const [inCase, inFrench, inPlace, inReach] = [casePlaces, letterPlaces, signPlaces, possibleSigns].map(
  (places) => new RegExp(places.map(({ source }) => source).join('|'), 'uy'),
) as [RegExp, RegExp, RegExp, RegExp]

/**
 * @param text a word between blanks. A lone character comes with the kind of its neighbours: `a` for a small letter,
 *   `#` for a capital, `0` or a blank, as in `a à #`
 * @returns from -3 to 2; a likelier word has a higher grade
 */
export function frenchGrade(text: string): number {
  const small = text.toLowerCase()
  let grade = usual
  for (let at = 0; at < text.length; at += 1)
    if (text.charCodeAt(at) >= 0x80) grade = Math.min(grade, gradeAt(text, small, at))
  return grade
}

function gradeAt(text: string, small: string, at: number): number {
  const stands = (places: RegExp, whole = text) => {
    places.lastIndex = at
    return places.test(whole)
  }
  if (/[\p{Ll}\p{Lu}]/u.test(text[at]!)) {
    if (stands(inFrench, small)) return stands(inCase) ? usual : possible
    return stands(inCase) ? foreign : impossible
  }
  if (stands(inPlace)) return usual
  return stands(inReach) ? possible : impossible
}
