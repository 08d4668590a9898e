/** Bounds on the numbers in a VNC peer's messages: a peer that exceeds them is rejected. */
import { MalformedError } from '../../bytes/malformed.ts'

/** Pixels of a framebuffer's side, and of its area: a screen of 7680 × 4320 fits. */
export const FRAMEBUFFER_SIDE_LIMIT = 16_384
export const FRAMEBUFFER_PIXEL_LIMIT = 2 ** 25

/** Pixels of a cursor's side. */
export const CURSOR_SIDE_LIMIT = 512

/** Bytes of a cut text on the wire, and of an extended one when inflated. */
export const CUT_TEXT_LIMIT = 4 * 1024 * 1024
export const CLIPBOARD_DATA_LIMIT = 8 * 1024 * 1024

/** Bytes of a desktop's name. */
export const NAME_LIMIT = 4096

/** Encodings in one SetEncodings: viewers send some dozens. */
export const ENCODINGS_LIMIT = 1024

/** Bytes of a fence's payload (community specification, ClientFence). */
export const FENCE_PAYLOAD_LIMIT = 64

/** Throws MalformedError for a framebuffer that is empty or too large. */
export function checkFramebufferSize(width: number, height: number): void {
  if (
    width < 1 ||
    height < 1 ||
    FRAMEBUFFER_SIDE_LIMIT < Math.max(width, height) ||
    FRAMEBUFFER_PIXEL_LIMIT < width * height
  ) {
    throw new MalformedError(
      `vnc: a screen of 1 × 1 to ${FRAMEBUFFER_PIXEL_LIMIT} pixels and at most ${FRAMEBUFFER_SIDE_LIMIT} a side was expected, found ${width} × ${height}`,
    )
  }
}
