/**
 * xrdp tells of a logon that has failed by a window alone, its connection log, in place of the account's desktop. Nothing
 * but its place tells it from a desktop, which begins with all of the screen: a square at (10, 10), of 400 pixels a side or,
 * where 0.10 scales it, of more (xrdp_wm_show_log), on any screen that is larger.
 */
import { ByteReader } from '../codec/reader.ts'
import { UPDATE, type Update } from '../codec/updates.ts'

const LOG = { left: 10, top: 10, least: 400 } as const
/** Of a rectangle: its size, depth and flags; the length of its pixels follows. */
const REST = 8

type Area = { left: number; top: number; right: number; bottom: number }

export class XrdpLogDetector {
  /** What has been drawn so far; undefined: nothing. */
  #drawn: Area | undefined

  /** Whether all that has been drawn, with this update, is the log. Throws MalformedError. */
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
