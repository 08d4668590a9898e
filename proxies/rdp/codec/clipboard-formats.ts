/**
 * Clipboard formats (MS-RDPECLIP 1.3.1.1) and their kinds and labels. Only listed formats count as text or
 * picture: a program can offer anything, including a file, under a name of its own.
 */

/** Windows' own format identifiers. Named formats have identifiers assigned at run time. */
export const FORMAT = {
  text: 1,
  bitmap: 2,
  metafile: 3,
  tiff: 6,
  oemText: 7,
  dib: 8,
  palette: 9,
  unicodeText: 13,
  enhancedMetafile: 14,
  files: 15,
  locale: 16,
  dibV5: 17,
} as const

export interface FormatName {
  id: number
  /** Empty for Windows' own formats. */
  name: string
}

/**
 * `text` and `picture` need the right to the clipboard. `files` are files, their names or their locations;
 * `other` may be anything. Both of these also need the right to files.
 */
export type FormatKind = 'text' | 'picture' | 'files' | 'other'

/** Windows assigns identifiers to named formats from here on. */
const FIRST_NAMED = 0xc000
/** Characters of a name that are logged. */
const LABEL_LIMIT = 64

/** Kind and label of Windows' own formats. */
const OWN: ReadonlyMap<number, [kind: FormatKind, label: string]> = new Map([
  [FORMAT.text, ['text', 'text']],
  [FORMAT.oemText, ['text', 'text']],
  [FORMAT.unicodeText, ['text', 'text']],
  [FORMAT.locale, ['text', 'locale']],
  [FORMAT.bitmap, ['picture', 'bitmap']],
  [FORMAT.dib, ['picture', 'dib']],
  [FORMAT.dibV5, ['picture', 'dib']],
  [FORMAT.palette, ['picture', 'palette']],
  [FORMAT.tiff, ['picture', 'tiff']],
  [FORMAT.metafile, ['picture', 'metafile']],
  [FORMAT.enhancedMetafile, ['picture', 'metafile']],
  [FORMAT.files, ['files', 'files']],
])

/** Kind and label of named formats, by name in lower case. */
const NAMED: ReadonlyMap<string, [kind: FormatKind, label: string]> = new Map([
  ['html format', ['text', 'html']],
  ['text/html', ['text', 'html']],
  ['rich text format', ['text', 'rtf']],
  ['rich text format without objects', ['text', 'rtf']],
  ['text/rtf', ['text', 'rtf']],
  ['csv', ['text', 'csv']],
  ['text/plain', ['text', 'text']],
  ['text/plain;charset=utf-8', ['text', 'text']],
  ['utf8_string', ['text', 'text']],
  ['png', ['picture', 'png']],
  ['image/png', ['picture', 'png']],
  ['jfif', ['picture', 'jpeg']],
  ['image/jpeg', ['picture', 'jpeg']],
  ['gif', ['picture', 'gif']],
  ['image/gif', ['picture', 'gif']],
  ['image/bmp', ['picture', 'bitmap']],
  ['image/x-bmp', ['picture', 'bitmap']],
  ['image/tiff', ['picture', 'tiff']],
  ['filegroupdescriptor', ['files', 'files']],
  ['filegroupdescriptorw', ['files', 'files']],
  ['filecontents', ['files', 'file contents']],
  ['filename', ['files', 'file name']],
  ['filenamew', ['files', 'file name']],
  ['filenamemap', ['files', 'file name']],
  ['filenamemapw', ['files', 'file name']],
  ['shell idlist array', ['files', 'file name']],
  ['preferred dropeffect', ['files', 'file operation']],
  ['x-special/gnome-copied-files', ['files', 'file name']],
  ['text/uri-list', ['files', 'file name']],
])

/** Format names are case-insensitive in Windows. */
export function kindOfFormat({ id, name }: FormatName): FormatKind {
  const own = OWN.get(id)?.[0] ?? 'other'
  if (name === '') return own
  const named = NAMED.get(name.toLowerCase())?.[0] ?? 'other'
  // Requires both to agree: the pasting program may use the name, or the number if it is Windows' own.
  return FIRST_NAMED <= id || named === own ? named : 'other'
}

/** Returns the format's name for events. */
export function labelOfFormat({ id, name }: FormatName): string {
  const known = name === '' ? OWN.get(id) : NAMED.get(name.toLowerCase())
  return known?.[1] ?? (name === '' ? `format ${id}` : name.slice(0, LABEL_LIMIT))
}

/** Reports whether this is the format of file lists. */
export function isFileList({ name }: Pick<FormatName, 'name'>): boolean {
  return name.toLowerCase() === 'filegroupdescriptorw'
}

export function isTextFormat(format: number): boolean {
  return format === FORMAT.unicodeText || format === FORMAT.text || format === FORMAT.oemText
}
