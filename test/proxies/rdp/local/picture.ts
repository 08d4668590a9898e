/** A screen of the bastion in full colours. */
import { Buffer } from 'node:buffer'
import { PALETTE } from '../../../../proxies/desktop/screens/palette.ts'
import type { Screen } from '../../../../proxies/desktop/screens/screen.ts'
import type { Picture } from '../../../peers/screen.ts'

export function pictureOfScreen(screen: Screen): Picture {
  const { width, height } = screen
  const { pixels } = screen.paint({ left: 0, top: 0, width, height })
  const rgb = Buffer.alloc(pixels.length * 3)
  for (const [at, colour] of pixels.entries()) rgb.set(PALETTE.subarray(3 * colour, 3 * colour + 3), 3 * at)
  return { width, height, rgb }
}
