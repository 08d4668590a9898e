/**
 * Capital letters as Windows' table has them, one code unit for one: `ß` has none there. What does not come back when
 * it is made small again (`ı`, `ſ`, `µ`) is not in that table.
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
