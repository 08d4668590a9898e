/**
 * Names that look like another (Unicode TR39): with invisible characters, with letters of several scripts, or
 * entirely in the letters of another script. The rules apply to new names: existing ones stay as they are.
 */

/** Characters without a glyph: ZWJ, soft hyphens, variation selectors, direction marks, tags, fillers. */
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/u
/**
 * More marks over one letter than any script writes, or the same mark twice: the letter beneath is
 * unreadable.
 */
const PILED = /\p{Mn}{5}|(\p{Mn})\1/u
const LEADING_MARK = /^\p{M}/u
/** Thai and Lao "sara am" are common letters, whatever their compatible forms are. */
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
/** Scripts that are written together ("highly restrictive", TR39 5.2). */
const TOGETHER = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
] as const

const ALLOWED: readonly RegExp[] = [...SCRIPTS.map((script) => [script]), ...TOGETHER].map((scripts) => {
  const classes = ['Common', 'Inherited', ...scripts].map((script) => `\\p{Script_Extensions=${script}}`)
  return new RegExp(`^[${classes.join('')}]*$`, 'u')
})

/** Returns the error in the look of a name, or undefined if there is none. */
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

/** Letters, each followed by the letters of other scripts or forms that look like it. */
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

/** Returns the name decomposed, each letter replaced by the one that it looks like. */
export function shownAs(name: string): string {
  return [...name.normalize('NFD')].map((letter) => LIKE.get(letter) ?? letter).join('')
}
