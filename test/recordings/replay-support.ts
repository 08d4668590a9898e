/** Recordings for the tests of replay: a busy terminal, beside a channel without one. */
import { Buffer } from 'node:buffer'
import { varintLength, writeVarint } from '../../recordings/container/format/varint.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import type { CatalogEntry } from '../../recordings/storage/catalog-entry.ts'
import { type Made, makeRoot, makeWriter, SESSION } from './support.ts'

export const SECOND = 1_000_000
/** Screens a second in `busy`. */
const RATE = 4

export interface Recorded extends Made {
  root: string
  entry: CatalogEntry
}

/** Makes a recording of these frames, each written at its second. */
export async function record(write: (made: Made) => Promise<void> | void): Promise<Recorded> {
  const root = makeRoot()
  const made = await makeWriter({ root })
  await write(made)
  await made.writer.close({ result: 'success' })
  const entry = await findRecording(root, SESSION)
  if (!entry) throw new Error('the recording is not there')
  return { ...made, root, entry }
}

export function open(made: Made, channel: number, terminal?: { columns: number; rows: number }): void {
  const fields = terminal
    ? { kind: 'shell', subprotocol: 'SSH_SHELL', terminal: { type: 'xterm', ...terminal } }
    : { kind: 'exec', subprotocol: 'SSH_REMOTE_COMMAND', command: 'make all' }
  made.writer.write(FRAME.channelOpen, channel, Buffer.from(JSON.stringify(fields)))
}

/** Writes this many seconds of a program that redraws its screen, like top, with a command now and then. */
export async function busy(made: Made, seconds: number, channel = 1): Promise<void> {
  open(made, channel, { columns: 80, rows: 24 })
  for (let turn = 0; turn < seconds * RATE; turn++) {
    made.clock.time += SECOND / RATE
    const line = (row: number) => `\x1b[3${row % 8}m${turn}.${row} ${'load '.repeat(1 + ((turn + row) % 9))}`
    const screen = Array.from({ length: 20 }, (_, row) => `${line(row)}\x1b[m\x1b[K\r\n`).join('')
    made.writer.write(FRAME.output, channel, Buffer.from(`\x1b[H${screen}界 turn ${turn}\x1b[K`))
    if (turn % (60 * RATE) === 0) {
      made.writer.write(FRAME.command, channel, Buffer.from(JSON.stringify({ line: `command ${turn}` })))
    }
    if (turn % (100 * RATE) === 99) {
      made.writer.write(FRAME.resize, channel, Buffer.concat([varint(80 + (turn % 7)), varint(24)]))
    }
    if (turn % 64 === 0) await new Promise<void>((resolve) => made.writer.onDrain(resolve))
  }
  made.writer.write(FRAME.channelClose, channel, Buffer.alloc(0))
}

function varint(value: number): Uint8Array {
  const bytes = new Uint8Array(varintLength(value))
  writeVarint(bytes, 0, value)
  return bytes
}
