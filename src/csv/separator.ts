/** The separator of cells: any single character without another meaning in a table. */

export const DEFAULT_SEPARATOR = ';'

/** Parses a separator, with `tab` for the tab character. @returns undefined if it cannot be a separator */
export function separatorOf(text: string): string | undefined {
  if (text.toLowerCase() === 'tab') return '\t'
  return [...text].length === 1 && !/["\r\n\0\uFEFF\uFFFD\p{Cs}]/u.test(text) ? text : undefined
}

export const SEPARATOR_RULE =
  'expected one character (";", ",", "tab" for a tab), but no quote and no end of a line'
