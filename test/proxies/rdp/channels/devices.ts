/** Devices of every kind, as a client announces them. */
import { Buffer } from 'node:buffer'
import { buildDeviceMessage, DEVICE_PACKET, DEVICE_TYPE } from '../../../../proxies/rdp/codec/rdpdr.ts'
import { ByteWriter } from '../../../../proxies/rdp/codec/writer.ts'

export const DEVICES = [
  [DEVICE_TYPE.serial, 1, 'COM1'],
  [DEVICE_TYPE.parallel, 2, 'LPT1'],
  [DEVICE_TYPE.printer, 3, 'PRN3'],
  [DEVICE_TYPE.drive, 4, 'home'],
  [DEVICE_TYPE.smartCard, 5, 'SCARD'],
  [0x99, 6, 'other'],
] as const

export function announce(devices: readonly (readonly [number, number, string])[] = DEVICES): Buffer {
  const writer = new ByteWriter().uint32(devices.length)
  for (const [type, id, name] of devices) {
    writer
      .uint32(type)
      .uint32(id)
      .bytes(Buffer.from(name.padEnd(8, '\0')))
      .uint32(0)
  }
  return buildDeviceMessage(DEVICE_PACKET.deviceListAnnounce, writer.finish())
}
