/** The spool in which the rows of a list wait for their client. */
import { createHash, randomBytes } from 'node:crypto'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { MAX_KEPT, NoRoomError, Room, Spool } from '../../../src/store/engine/reading-spool.ts'

let folder: string
let path: string
let room: Room
let spool: Spool
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  path = join(folder, 'test.db')
  room = new Room(path)
  spool = new Spool(path, room)
})
afterEach(() => {
  spool.close()
  rmSync(folder, { recursive: true })
})

const openFiles = () =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(`${path}-list-`) ? [`/proc/self/fd/${fd}`] : []
    } catch {
      return []
    }
  })
const digest = (bytes: Buffer | undefined) => bytes && createHash('sha256').update(bytes).digest('hex')

describe('a spool', () => {
  it('gives what it was given, in its order, from memory and from its file', () => {
    const pieces = Array.from({ length: 40 }, (_, n) => randomBytes(1 + n * 1000))
    for (const piece of pieces) spool.add(piece)
    expect(room.used).toBeGreaterThan(0)
    for (const piece of pieces) expect(digest(spool.next())).toBe(digest(piece))
    expect(spool.next()).toBeUndefined()
  })

  it('needs no file for little', () => {
    spool.add(Buffer.alloc(MAX_KEPT - 1))
    spool.add(Buffer.alloc(10))
    expect([openFiles(), room.used]).toEqual([[], 0])
  })

  it('has a file without a name, in which nothing can be read, and leaves nothing', () => {
    spool.add(Buffer.alloc(MAX_KEPT))
    spool.add(Buffer.from('a hash of a password'.repeat(100)))
    const [file] = openFiles()
    expect(readdirSync(folder)).toEqual([])
    expect(readFileSync(file!).includes('password')).toBe(false)
    spool.close()
    spool.close()
    expect([openFiles(), room.used]).toEqual([[], 0])
  })

  it('gives nothing that it was not given', () => {
    spool.add(Buffer.alloc(MAX_KEPT))
    spool.add(Buffer.alloc(100))
    spool.next()
    const file = openFiles()[0]!
    const bytes = readFileSync(file)
    bytes[50] = bytes[50]! ^ 1
    writeFileSync(file, bytes)
    expect(() => spool.next()).toThrow()
    writeFileSync(file, bytes.subarray(0, 20))
    expect(() => spool.next()).toThrow('shorter than what was written')
  })

  it('takes a part of what is free only, all together', () => {
    const { bavail, bsize } = statfsSync(folder)
    const most = Math.min((bavail * bsize) / 8, 8 * 1024 ** 3)
    room.take(Math.floor(most / 2))
    expect(() => room.take(most)).toThrow(NoRoomError)
    spool.add(Buffer.alloc(MAX_KEPT))
    spool.add(Buffer.alloc(100))
    room.give(Math.floor(most / 2))
    expect(room.used).toBeGreaterThan(100)
  })
})
