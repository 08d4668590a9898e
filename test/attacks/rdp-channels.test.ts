/**
 * A client and a program on the target conspire to move data beside the desktop: in unknown formats' names,
 * in failed responses, in the rest of messages, in requests and packets with another purpose.
 */
import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { expect, test, vi } from 'vitest'
import { buildShare, CONTROL_PDU } from '../../proxies/rdp/codec/share.ts'
import { ByteWriter } from '../../proxies/rdp/codec/writer.ts'
import type { Right } from '../../src/model/rights.ts'
import { newWorldWithDesktop, type World, type WorldOptions } from '../proxies/rdp/relay-world.ts'

const LOOT = Buffer.alloc(3_000, 'loot')
const PASTE: Right[] = ['RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN']
const EVERYTHING: Right[] = [...PASTE, 'RDP_CLIPBOARD_FILE', 'RDP_DRIVE', 'RDP_PRINTER', 'RDP_SMARTCARD']

const clipboard = (type: number, flags: number, body: Uint8Array) =>
  new ByteWriter().uint16(type).uint16(flags).uint32(body.length).bytes(body).finish()
const offer = (id: number, name: string) =>
  clipboard(
    2,
    0,
    new ByteWriter()
      .uint32(id)
      .bytes(Buffer.from(`${name}\0`, 'utf16le'))
      .finish(),
  )
const ask = (id: number) => clipboard(4, 0, new ByteWriter().uint32(id).finish())

/** Counts the bytes of the loot that have reached the target, or the client, on a channel. */
const lootOf = (world: World, side: 'client' | 'target') =>
  world[side].heard().channels.reduce((sum, [, message]) => {
    let [count, at] = [0, message.indexOf('loot')]
    for (; at >= 0; at = message.indexOf('loot', at + 4)) count += 4
    return sum + count
  }, 0)
const told = (world: World, code: string) =>
  world.events.filter(([one]) => one === code).map(([, fields]) => fields as Record<string, unknown>)

test.each([
  ['a name of its own', 0xc123, 'Backup 7'],
  ['the name of an object', 0xc124, 'Embed Source'],
  ['the name of contents', 0xc125, 'FileContents'],
  ['a private number', 0x234, ''],
  ['the number of a text, under another name', 13, 'Backup 7'],
])('without the right to files nothing is pasted under %s', async (_what, id, name) => {
  for (const [giver, taker] of [
    ['client', 'target'],
    ['target', 'client'],
  ] as const) {
    const world = await newWorldWithDesktop({ rights: PASTE })
    world[giver].channel('cliprdr', offer(id, name))
    world[taker].channel('cliprdr', ask(id))
    world[giver].channel('cliprdr', clipboard(5, 1, LOOT))
    expect(lootOf(world, taker)).toBe(0)
  }
})

test('with it what is pasted is told by its name, size and hash', async () => {
  const world = await newWorldWithDesktop({ rights: EVERYTHING })
  world.target.channel('cliprdr', offer(0xc123, 'Backup 7'))
  world.client.channel('cliprdr', ask(0xc123))
  world.target.channel('cliprdr', clipboard(5, 1, LOOT))
  expect(lootOf(world, 'client')).toBe(LOOT.length)
  await vi.waitFor(() => expect(told(world, 'clipboard')).toHaveLength(1))
  expect(told(world, 'clipboard')).toEqual([
    expect.objectContaining({ format: 'Backup 7', size: LOOT.length, sha256: hash('sha256', LOOT) }),
  ])
})

test('an answer on the clipboard that says that it failed carries nothing', async () => {
  const world = await newWorldWithDesktop({ rights: EVERYTHING })
  world.client.channel('cliprdr', offer(0xc123, 'PNG'))
  for (const loot of [LOOT, Buffer.alloc(300_000, 'loot')]) {
    world.target.channel('cliprdr', ask(0xc123))
    world.client.channel('cliprdr', clipboard(5, 2, loot))
  }
  expect(lootOf(world, 'target')).toBe(0)
})

const DRIVE = 4
const PRINTER = 3
const CARD = 5
function announce(): Buffer {
  const writer = new ByteWriter().uint16(0x4472).uint16(0x4441).uint32(3)
  for (const [type, id, name] of [
    [8, DRIVE, 'home'],
    [4, PRINTER, 'PRN3'],
    [0x20, CARD, 'SCARD'],
  ] as const) {
    writer
      .uint32(type)
      .uint32(id)
      .bytes(Buffer.from(name.padEnd(8, '\0')))
      .uint32(0)
  }
  return writer.finish()
}
const request = (device: number, file: number, id: number, major: number, details: Uint8Array, minor = 0) =>
  new ByteWriter()
    .uint16(0x4472)
    .uint16(0x4952)
    .uint32(device)
    .uint32(file)
    .uint32(id)
    .uint32(major)
    .uint32(minor)
    .bytes(details)
    .finish()
const answer = (device: number, id: number, status: number, details: Uint8Array) =>
  new ByteWriter()
    .uint16(0x4472)
    .uint16(0x4943)
    .uint32(device)
    .uint32(id)
    .uint32(status)
    .bytes(details)
    .finish()
const numbers = (...all: number[]) => all.reduce((writer, one) => writer.uint32(one), new ByteWriter())

const create = (path: Uint8Array) => numbers(1, 0, 0, 0, 0, 1, 0x40, path.length).bytes(path).finish()

/** Opens a file on the drive and a job of the printer, each as 7. */
async function sharing(options?: WorldOptions): Promise<World> {
  const world = await newWorldWithDesktop({ rights: EVERYTHING, ...options })
  world.client.channel('rdpdr', announce())
  const path = Buffer.from('\\plan.txt\0', 'utf16le')
  for (const device of [DRIVE, PRINTER]) {
    world.target.channel('rdpdr', request(device, 0, 1, 0, create(path)))
    world.client.channel('rdpdr', answer(device, 1, 0, numbers(7).finish()))
  }
  world.client.heard()
  world.target.heard()
  return world
}
const empty = Buffer.alloc(32)
const withLoot = (...head: number[]) =>
  numbers(...head)
    .bytes(LOOT)
    .finish()
const FAILED = 0xc0000001

/** Data that passes in each way, and the part that the audit log must have. */
const WAYS: Record<string, (world: World) => void> = {
  'a read that failed': ({ client, target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 3, empty))
    client.channel('rdpdr', answer(DRIVE, 2, FAILED, withLoot(LOOT.length)))
  },
  'a read of nothing': ({ client, target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 3, empty))
    client.channel('rdpdr', answer(DRIVE, 2, 0, withLoot(0)))
  },
  'a read that is answered when its file is closed': ({ client, target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 3, empty))
    target.channel('rdpdr', request(DRIVE, 7, 3, 2, empty))
    client.channel('rdpdr', answer(DRIVE, 3, 0, empty))
    client.channel('rdpdr', answer(DRIVE, 2, 0, withLoot(LOOT.length)))
  },
  'a write of nothing': ({ target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 4, withLoot(0, 0, 0, 0, 0, 0, 0, 0)))
  },
  'a write that fails': ({ client, target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 4, withLoot(LOOT.length, 0, 0, 0, 0, 0, 0, 0)))
    client.channel('rdpdr', answer(DRIVE, 2, FAILED, numbers(0).finish()))
  },
  'a control request': ({ client, target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 0xe, withLoot(0, LOOT.length, 0, 0, 0, 0, 0, 0)))
    client.channel('rdpdr', answer(DRIVE, 2, FAILED, withLoot(LOOT.length)))
  },
  'extended attributes': ({ target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 8, withLoot(LOOT.length, 0, 0, 0, 0, 0, 0, 0)))
  },
  'the end of a close': ({ client, target }) => {
    target.channel('rdpdr', request(DRIVE, 7, 2, 2, withLoot(0, 0, 0, 0, 0, 0, 0, 0)))
    client.channel('rdpdr', answer(DRIVE, 2, 0, withLoot(0, 0)))
  },
  'a job of a printer by control': ({ target }) => {
    target.channel('rdpdr', request(PRINTER, 7, 2, 0xe, withLoot(0, LOOT.length, 0, 0, 0, 0, 0, 0)))
  },
  'a packet of printers that nobody knows': ({ client, target }) => {
    target.channel('rdpdr', Buffer.concat([Buffer.from('52505a5a', 'hex'), LOOT]))
    client.channel('rdpdr', Buffer.concat([Buffer.from('52504350', 'hex'), LOOT]))
  },
  'settings of a printer': ({ target }) => {
    target.channel('rdpdr', Buffer.concat([Buffer.from('52504350', 'hex'), LOOT]))
  },
  'a component that nobody knows': ({ client, target }) => {
    for (const side of [client, target]) {
      side.channel('rdpdr', Buffer.concat([Buffer.from('aabbccdd', 'hex'), LOOT]))
    }
  },
  'a card': ({ client, target }) => {
    target.channel('rdpdr', request(CARD, 0, 2, 0xe, withLoot(0, LOOT.length, 0, 0, 0, 0, 0, 0)))
    client.channel('rdpdr', answer(CARD, 2, FAILED, withLoot(LOOT.length)))
  },
  'the begin of the channel': ({ client, target }) => {
    target.channel('rdpdr', Buffer.concat([Buffer.from('72446e49', 'hex'), LOOT]))
    client.channel('rdpdr', Buffer.concat([Buffer.from('72444343', 'hex'), LOOT]))
  },
}

test.each(Object.keys(WAYS))('what passes by %s is told', async (way) => {
  const world = await sharing()
  WAYS[way]!(world)
  const passed = lootOf(world, 'client') + lootOf(world, 'target')
  world.client.stream.closed = true
  world.client.stream.onClosed?.()
  await vi.waitFor(() => expect(world.closed).toHaveLength(1))
  const sizes = told(world, 'file.transfer').map(({ size }) => size as number)
  const sum = sizes.reduce((all, size) => all + size, 0)
  // Versions and numbers, which also count as loot.
  expect(passed - sum).toBeLessThanOrEqual(16)
  // The names by which the file and the job were opened.
  expect(sum).toBeLessThanOrEqual(passed + 40)
})

const text = (value: string) => Buffer.from(`${value}\0`, 'utf16le')
const change = (kind: number, content: Uint8Array) =>
  numbers(kind, content.length, 0, 0, 0, 0, 0, 0).bytes(content).finish()
const rename = (path: Uint8Array, behind: Uint8Array = Buffer.alloc(0)) =>
  change(10, new ByteWriter().uint16(0).uint32(path.length).bytes(path).bytes(behind).finish())
const query = (path: Uint8Array) =>
  new ByteWriter().uint32(1).uint8(1).uint32(path.length).zeros(23).bytes(path).finish()
const BEHIND = Buffer.concat([text('\\plan.txt'), LOOT])

test.each<[string, number, Uint8Array, number?]>([
  ['a path that is opened', 0, create(BEHIND)],
  ['half a character', 0, create(Buffer.alloc(3, 'A'))],
  ['a new path', 6, rename(BEHIND)],
  ['a new path’s end', 6, rename(text('\\new.txt'), LOOT)],
  ['a change of dates', 6, change(4, LOOT)],
  ['a change of size', 6, change(20, LOOT)],
  ['a removal', 6, change(13, LOOT)],
  ['names that are asked for', 12, query(BEHIND), 1],
  ['a pattern of megabytes', 12, query(Buffer.alloc(3_000_000, 'A')), 1],
])('nothing goes to a drive behind %s', async (_what, major, details, minor) => {
  const { client, target } = await sharing()
  target.channel('rdpdr', request(DRIVE, 7, 2, major, details, minor))
  expect(client.heard().channels).toEqual([])
})

test.each<[string, number, (name: Uint8Array) => Uint8Array, number, number?]>([
  ['a file that is not there', 0, create, FAILED],
  ['a file that is opened, and not read', 0, create, 0],
  ['files that are not there', 12, query, FAILED, 1],
])('what names of %s say is told', async (_what, major, details, status, minor) => {
  const world = await sharing()
  const name = Buffer.from(`\\${'c2VjcmV0'.repeat(20)}\0`, 'utf16le')
  for (let id = 10; id < 40; id++) {
    world.target.channel('rdpdr', request(DRIVE, 7, id, major, details(name), minor))
    world.client.channel('rdpdr', answer(DRIVE, id, status, numbers(id, 0).finish()))
  }
  expect(world.client.heard().channels.length).toBeGreaterThan(0)
  world.client.stream.closed = true
  world.client.stream.onClosed?.()
  await vi.waitFor(() => expect(world.closed).toHaveLength(1))
  // Once for each drive, not once for each name.
  const [one, ...others] = told(world, 'file.transfer').filter(({ path }) => path !== 'PRN3')
  expect(others).toEqual([])
  expect(one).toMatchObject({ path: 'home:', direction: 'down' })
  expect(one!.size).toBeGreaterThanOrEqual(30 * name.length)
})

test('what has passed when the target sends the session on is told', async () => {
  const world = await sharing({ redirect: async (one) => one.another().target })
  WAYS['a write that fails']!(world)
  const address = Buffer.from('192.0.2.7\0', 'utf16le')
  const packet = new ByteWriter().zeros(2).uint16(0x400).uint16(0).uint32(5).uint32(0x1)
  packet.uint32(address.length).bytes(address)
  world.target.io(buildShare(CONTROL_PDU.serverRedirection, 1002, packet.finish()))
  await vi.waitFor(() =>
    expect(told(world, 'file.transfer')).toContainEqual(
      expect.objectContaining({ path: 'home:\\plan.txt', direction: 'down', size: LOOT.length }),
    ),
  )
})
