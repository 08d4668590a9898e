/**
 * Detects xrdp's connection log. xrdp reports a failed logon only by this window, shown instead of the
 * account's desktop. Only its place differs from a desktop, which first draws the whole screen: a square at
 * (10, 10), with sides of 400 pixels or, if 0.10 scales it, more (xrdp_wm_show_log), on any larger screen.
 */
import { ByteReader } from '../codec/reader.ts'
import { UPDATE, type Update } from '../codec/updates.ts'

const LOG = { left: 10, top: 10, least: 400 } as const
/** Bytes of a rectangle after its position: size, depth and flags; the length of its pixels follows. */
const REST = 8

type Area = { left: number; top: number; right: number; bottom: number }

export class XrdpLogDetector {
  /** The area drawn so far. Undefined if nothing was drawn. */
  #drawn: Area | undefined

  /** Reports whether everything drawn so far, including this update, is the log. Throws MalformedError. */
  update({ code, data }: Update): boolean {
    if (code !== UPDATE.bitmap) return false
    const reader = new ByteReader(data, 'bitmap update')
    reader.skip(2)
    for (let count = reader.uint16(); count > 0; count--) {
      this.#drawn = union(this.#drawn, readArea(reader))
    }
    if (!this.#drawn) return false
    const { left, top, right, bottom } = this.#drawn
    const [width, height] = [right - left + 1, bottom - top + 1]
    return left === LOG.left && top === LOG.top && width === height && LOG.least <= width
  }
}

function readArea(reader: ByteReader): Area {
  const area = {
    left: reader.uint16(),
    top: reader.uint16(),
    right: reader.uint16(),
    bottom: reader.uint16(),
  }
  reader.skip(REST)
  reader.skip(reader.uint16())
  return area
}

function union(one: Area | undefined, other: Area): Area {
  if (!one) return other
  return {
    left: Math.min(one.left, other.left),
    top: Math.min(one.top, other.top),
    right: Math.max(one.right, other.right),
    bottom: Math.max(one.bottom, other.bottom),
  }
}
