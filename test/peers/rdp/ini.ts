/** Debian's settings files, with changed values. */
import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Copies the file with other values for these keys at their first place, since later sections of xrdp.ini
 * have `port` as well; in a comment if they occur nowhere else.
 */
export function copyIni(from: string, to: string, values: Record<string, string>): void {
  const lines = readFileSync(from, 'utf8').split('\n')
  for (const [key, value] of Object.entries(values)) {
    const set = lines.findIndex((line) => line.startsWith(`${key}=`))
    const at = set < 0 ? lines.findIndex((line) => line.startsWith(`#${key}=`)) : set
    if (at < 0) throw new Error(`${from} has no ${key}`)
    lines[at] = `${key}=${value}`
  }
  writeFileSync(to, lines.join('\n'))
}
