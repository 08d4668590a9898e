/**
 * Capital letters of Windows' table, one code unit for one: `ß` has none there. Letters that do not return to
 * themselves in lower case (`ı`, `ſ`, `µ`) are not in that table.
 */
export function windowsUpperCase(text: string): string {
  let upper = ''
  for (let at = 0; at < text.length; at++) {
    const unit = text[at]!
    const capital = unit.toUpperCase()
    upper += capital.length === 1 && capital.toLowerCase() === unit ? capital : unit
  }
  return upper
}
