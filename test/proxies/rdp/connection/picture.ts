/** The picture drawn by the decoder of recordings, to compare with a client's. */
import { Buffer } from 'node:buffer'
import type { Framebuffer } from '../../../../recordings/decode/graphics/framebuffer.ts'
import type { Picture } from '../../../peers/screen.ts'

export function pictureFrom({ framebuffer }: { framebuffer: Framebuffer }): Picture {
  const { width, height, bytes } = framebuffer
  const rgb = Buffer.alloc(width * height * 3)
  for (let from = 0, to = 0; to < rgb.length; from += 4, to += 3) rgb.set(bytes.subarray(from, from + 3), to)
  return { width, height, rgb }
}
