/** The text of a round of the sign-in, for fronts that show lines. */
import type { Challenge } from '../../src/contract/gate.ts'
import { qrLines } from '../../src/drawing/qr.ts'

/**
 * Returns the instructions of a round in lines, below the QR code of its URI: that would be many lines of escapes on a
 * client that shows ASCII only.
 */
export function instructionLines({ instructions, uri }: Pick<Challenge, 'instructions' | 'uri'>): string[] {
  const lines = instructions === '' ? [] : instructions.split('\n')
  return uri === undefined ? lines : [...qrLines(uri), ...lines, `  ${uri}`]
}
