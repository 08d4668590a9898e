/**
 * Names that show as another does (Unicode TR39): with what nobody sees in them, with letters of several scripts, or in
 * the letters of another script altogether. Rules are for names that are made: those that are there stay as they are.
 */

/** ZWJ, soft hyphens, variation selectors, marks of direction, tags, fillers: what is shown as nothing. */
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/u
/** More marks over one letter than any script writes, or one twice: what stands beneath cannot be read. */
const PILED = /\p{Mn}{5}|(\p{Mn})\1/u
const LEADING_MARK = /^\p{M}/u
/** Thai and Lao "sara am" are letters of every day, whatever their compatible forms are. */
const SARA_AM = /[\u0e33\u0eb3]/g

/** Scripts in common use today (UAX 31, table 5). */
const SCRIPTS = [
  'Latin',
  'Greek',
  'Cyrillic',
  'Armenian',
  'Hebrew',
  'Arabic',
  'Thaana',
  'Devanagari',
  'Bengali',
  'Gurmukhi',
  'Gujarati',
  'Oriya',
  'Tamil',
  'Telugu',
  'Kannada',
  'Malayalam',
  'Sinhala',
  'Thai',
  'Lao',
  'Tibetan',
  'Myanmar',
  'Georgian',
  'Ethiopic',
  'Khmer',
] as const
/** What is written together ("highly restrictive", TR39 5.2). */
const TOGETHER = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
] as const

const ALLOWED: readonly RegExp[] = [...SCRIPTS.map((script) => [script]), ...TOGETHER].map((scripts) => {
  const classes = ['Common', 'Inherited', ...scripts].map((script) => `\\p{Script_Extensions=${script}}`)
  return new RegExp(`^[${classes.join('')}]*$`, 'u')
})

/** What is wrong with how a name shows; undefined: nothing is. */
export function lookError(name: string): string | undefined {
  if (IGNORABLE.test(name)) return 'a name must not hold characters that are not shown'
  const parts = name.normalize('NFD')
  if (PILED.test(parts) || LEADING_MARK.test(parts)) {
    return 'a name must not hold marks that stand on nothing, twice, or five on one letter'
  }
  const plain = name.replaceAll(SARA_AM, '')
  if (plain.normalize('NFKC') !== plain.normalize('NFC')) {
    return 'a name must not hold other forms of letters, digits or spaces (wide, mathematical, ligatures)'
  }
  if (!ALLOWED.some((allowed) => allowed.test(name))) {
    return 'a name must not mix letters of several scripts, or hold such of scripts that are in use no more'
  }
  return undefined
}

/** Letters, each followed by the one of another script or form that it shows as. */
const LIKE = new Map<string, string>()
for (const [like, letters] of Object.entries({
  // Cyrillic, Greek, Armenian, Latin beyond its alphabet
  a: 'аАαΑɑᴀ',
  b: 'ВΒЬьƅʙ',
  c: 'сСϲϹᴄ',
  d: 'ԁᴅ',
  e: 'еЕΕᴇ',
  g: 'Ԍցɡɢ',
  h: 'һНΗհʜ',
  i: 'іІιΙɩɪı',
  j: 'јЈϳͿյᴊ',
  k: 'кКκΚᴋĸ',
  l: 'ӏӀǀԼʟ',
  m: 'мМΜᴍ',
  n: 'ηΝոռɴ',
  o: 'оОοΟσօՕᴏ',
  p: 'рРρΡᴘ',
  q: 'ԛԚզ',
  r: 'гʀ',
  s: 'ѕЅՏꜱ',
  t: 'тТτΤᴛ',
  u: 'υսՍᴜ',
  v: 'ѵѴνᴠ',
  w: 'ԝԜωաᴡ',
  x: 'хХχΧ',
  y: 'уУγΥʏ',
  z: 'Ζᴢ',
  '3': 'ЗзӠӡ',
  '6': 'б',
  // Han, Hiragana
  エ: '工',
  ロ: '口',
  ニ: '二',
  ハ: '八',
  ト: '卜',
  タ: '夕',
  カ: '力',
  ー: '一',
  ヘ: 'へ',
  リ: 'り',
})) {
  for (const letter of letters) LIKE.set(letter, like)
}

/** The name with each letter as the one that it shows as, decomposed. */
export function shownAs(name: string): string {
  return [...name.normalize('NFD')].map((letter) => LIKE.get(letter) ?? letter).join('')
}
