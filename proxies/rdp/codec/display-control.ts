/** The dynamic channel that a client uses to resize its desktop (MS-RDPEDISP). */
import type { Buffer } from 'node:buffer'
import { DESKTOP_LIMIT, largeEnough, scaleFor } from './client-data.ts'
import { ByteReader } from './reader.ts'
import { ByteWriter } from './writer.ts'

/** Name of the dynamic channel. */
export const DISPLAY_CONTROL = 'Microsoft::Windows::RDS::DisplayControl'

const LAYOUT = 2
const CAPABILITIES = { type: 5, length: 20 } as const
const MONITOR = 40
const PRIMARY = 1
const DISPLAY_LEAST = 200
export const MONITOR_LIMIT = 16

export interface Monitor {
  isPrimary: boolean
  left: number
  top: number
  width: number
  height: number
  /** desktopScaleFactor and deviceScaleFactor, in percent. */
  scales: [desktop: number, device: number]
}

/** Returns the monitors of a client's layout, or undefined if the message is of another type. */
export function parseMonitorLayout(bytes: Uint8Array): Monitor[] | undefined {
  const reader = new ByteReader(bytes, 'display control')
  const type = reader.uint32()
  reader.skip(4)
  if (type !== LAYOUT) return undefined
  const size = reader.expect('size of a monitor', reader.uint32(), MONITOR)
  const count = reader.uint32()
  if (count < 1 || MONITOR_LIMIT < count) {
    reader.fail(`1 to ${MONITOR_LIMIT} monitors were expected, found ${count}`)
  }
  const monitors = Array.from({ length: count }, (): Monitor => {
    const monitor = new ByteReader(reader.bytes(size), 'display control monitor')
    const isPrimary = (monitor.uint32() & PRIMARY) !== 0
    const left = monitor.uint32() | 0
    const top = monitor.uint32() | 0
    const [width, height] = [readSide(monitor), readSide(monitor)]
    // Skips physical width, physical height (millimetres) and orientation.
    monitor.skip(4 + 4 + 4)
    return { isPrimary, left, top, width, height, scales: [monitor.uint32(), monitor.uint32()] }
  })
  reader.end()
  return monitors
}

/** Builds a layout of one monitor. The caller ensures the least size of a desktop. */
export function buildMonitorLayout(monitor: Monitor): Buffer {
  const { width, height } = largeEnough(monitor)
  const [scale, deviceScale] = monitor.scales
  return new ByteWriter(16 + MONITOR)
    .uint32(LAYOUT)
    .uint32(16 + MONITOR)
    .uint32(MONITOR)
    .uint32(1)
    .uint32(PRIMARY)
    .zeros(8)
    .uint32(width)
    .uint32(height)
    .zeros(12)
    .uint32(scaleFor({ width, height }, scale))
    .uint32(deviceScale)
    .finish()
}

/** Reports whether the message is a DISPLAYCONTROL_CAPS_PDU, the only one that a target sends. */
export function isDisplayCapabilities(bytes: Uint8Array): boolean {
  if (bytes.length !== CAPABILITIES.length) return false
  const reader = new ByteReader(bytes, 'display control')
  const [type, length, monitors] = [reader.uint32(), reader.uint32(), reader.uint32()]
  const isAsMany = 1 <= monitors && monitors <= MONITOR_LIMIT
  const isAsLarge = Math.max(reader.uint32(), reader.uint32()) <= DESKTOP_LIMIT
  return type === CAPABILITIES.type && length === CAPABILITIES.length && isAsMany && isAsLarge
}

function readSide(reader: ByteReader): number {
  const pixels = reader.uint32()
  if (pixels < DISPLAY_LEAST || DESKTOP_LIMIT < pixels) {
    reader.fail(`a side of ${DISPLAY_LEAST} to ${DESKTOP_LIMIT} pixels was expected, found ${pixels}`)
  }
  return pixels
}
