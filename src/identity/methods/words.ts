/** Words of servers, as people may see them. */

/** Returns a server's words without anything that could control a terminal. */
export function shown(text: string, limit: number): string {
  return text
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu, ' ')
    .slice(0, limit)
    .toWellFormed()
    .replace(/^\n+/, '')
}
