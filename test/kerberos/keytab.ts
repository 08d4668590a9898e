/** A keytab as ktutil writes it. */
import { Buffer } from 'node:buffer'

export interface Entry {
  realm: string
  components: string[]
  version: number
  type: number
  key: Uint8Array
}

export function keytabOf(entries: readonly Entry[]): Buffer {
  const uint16 = (value: number) => Buffer.from([value >> 8, value & 255])
  const uint32 = (value: number) => Buffer.concat([uint16(value >>> 16), uint16(value & 0xffff)])
  const data = (value: string | Uint8Array) => Buffer.concat([uint16(value.length), Buffer.from(value)])
  const parts = entries.map(({ realm, components, version, type, key }) => {
    const names = [uint16(components.length), data(realm), ...components.map(data)]
    const rest = [
      uint32(1),
      uint32(0),
      Buffer.from([version & 255]),
      uint16(type),
      data(key),
      uint32(version),
    ]
    const body = Buffer.concat([...names, ...rest])
    return Buffer.concat([uint32(body.length), body])
  })
  return Buffer.concat([Buffer.from([5, 2]), ...parts])
}
