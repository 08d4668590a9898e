/**
 * How targets read a name. A Windows server accepts several names for one file: it reads `\\` as `/`, drops
 * dots and spaces at the end, opens the stream of a file behind a `:`, and knows a short form of long names.
 * The target's system is unknown, so a rule has to hold for each reading.
 */
import type { FileRule } from './file-rule.ts'
import type { Path } from './path-pattern.ts'

const ANOTHER_ON_WINDOWS = /[\\:]|[. ]$/
const DRIVE = /^[A-Za-z]:$/
/** `PROGRA~1.EXE`: a short name, with the extension cut to three characters. */
const SHORT = /~\d{1,6}\.([^.]{1,3})$/

/** Returns the path, and its Windows reading if that differs. */
export function onWindows(path: Path): readonly Path[] {
  if (!path.some((name) => ANOTHER_ON_WINDOWS.test(name))) return [path]
  const other: string[] = []
  for (const [index, name] of path.flatMap((segment) => segment.split('\\')).entries()) {
    if (name === '..') other.pop()
    else if (index === 0 && DRIVE.test(name)) other.push(name)
    else {
      const plain = withoutEnd(name.split(':')[0] ?? '')
      if (plain !== '') other.push(plain)
    }
  }
  return [path, other]
}

/**
 * Whether a rule's extensions match the last name of a path; a rule without extensions always matches. A rule
 * that forbids matches if any reading of the name has the extension, a rule that allows only if all have it.
 */
export function hasExtension({ extensions, action }: FileRule, path: Path): boolean {
  if (extensions === undefined) return true
  const name = path.at(-1) ?? ''
  const key = extensionKey(name)
  const readings = key.split(/[:\\]/).map(withoutEnd)
  const isOne = (name: string) => extensions.some((extension) => name.endsWith(`.${extension}`))
  if (action === 'allow')
    return marksOf(key) === marksOf(name) && readings.every((one) => isOne(one) && !isCutShort(one))
  return readings.some((name) => isOne(name) || extensions.some((extension) => mayBeShort(name, extension)))
}

/**
 * The form in which extensions and names are compared: HFS+ also ignores invisible characters, and without
 * regard to case `ſ` is an `s` and a ligature is its letters.
 */
export function extensionKey(name: string): string {
  return name
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
}

/**
 * Counts the characters that separate a name from its stream or folder; look-alikes such as a wide dot do not
 * count.
 */
function marksOf(name: string): number {
  return name.match(/[.:\\ ]/g)?.length ?? 0
}

function withoutEnd(name: string): string {
  let end = name.length
  while (end > 0 && '. '.includes(name[end - 1]!)) end--
  return name.slice(0, end)
}

/** Whether a name may be the short form of a name with this extension. */
function mayBeShort(name: string, extension: string): boolean {
  const last = extension.slice(extension.lastIndexOf('.') + 1)
  return SHORT.exec(name)?.[1] === last.slice(0, 3)
}

function isCutShort(name: string): boolean {
  return SHORT.exec(name)?.[1]?.length === 3
}
