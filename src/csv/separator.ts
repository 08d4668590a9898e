/** What stands between two cells: any single character that does not mean something else in a table. */

export const DEFAULT_SEPARATOR = ';'

/** `tab` for those who cannot type one. @returns undefined when it cannot be a separator */
export function separatorOf(text: string): string | undefined {
  if (text.toLowerCase() === 'tab') return '\t'
  return [...text].length === 1 && !/["\r\n\0\uFEFF\uFFFD\p{Cs}]/u.test(text) ? text : undefined
}

export const SEPARATOR_RULE =
  'expected one character (";", ",", "tab" for a tab), but no quote and no end of a line'
