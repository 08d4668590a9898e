/**
 * What targets make of a name. A server on Windows takes several names for one file: it reads `\\` as `/`, drops dots and
 * spaces at the end, opens the stream of a file behind a `:`, and knows a short form of long names. Which system a target
 * has is not known, so that a rule has to hold for each reading.
 */
import type { FileRule } from './file-rule.ts'
import type { Path } from './path-pattern.ts'

const ANOTHER_ON_WINDOWS = /[\\:]|[. ]$/
const DRIVE = /^[A-Za-z]:$/
/** `PROGRA~1.EXE`: what an extension of more than three characters is cut to, too. */
const SHORT = /~\d{1,6}\.([^.]{1,3})$/

/** The path, and what it is on Windows where that is another. */
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
 * Whether a rule about extensions holds for the last name of a path; one about none does. A rule that forbids holds
 * where one reading of the name has the extension, one that allows where all have it.
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
 * What extensions and the names that end in them are compared by: HFS+ does not look at invisible characters either, and
 * where case makes no difference `ſ` is an `s`, and a ligature is its letters.
 */
export function extensionKey(name: string): string {
  return name
    .replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '')
    .normalize('NFKC')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
}

/** How many characters part a name; others, such as a wide dot, only look like them. */
function marksOf(name: string): number {
  return name.match(/[.:\\ ]/g)?.length ?? 0
}

function withoutEnd(name: string): string {
  let end = name.length
  while (end > 0 && '. '.includes(name[end - 1]!)) end--
  return name.slice(0, end)
}

/** Whether a name may be the short form of one with this extension. */
function mayBeShort(name: string, extension: string): boolean {
  const last = extension.slice(extension.lastIndexOf('.') + 1)
  return SHORT.exec(name)?.[1] === last.slice(0, 3)
}

function isCutShort(name: string): boolean {
  return SHORT.exec(name)?.[1]?.length === 3
}
