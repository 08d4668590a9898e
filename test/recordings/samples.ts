/** Recordings to damage, and forgeries of them with all links repaired. */
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Chain } from '../../recordings/container/chain.ts'
import { encodeCheckpoint, parseCheckpoint } from '../../recordings/container/format/checkpoint.ts'
import { encodeHeader, type Metadata, parseHeader } from '../../recordings/container/format/header.ts'
import { LINK_LENGTH } from '../../recordings/container/format/limits.ts'
import { type PlacedRecord, RecordParser } from '../../recordings/container/format/parser.ts'
import { RECORD } from '../../recordings/container/format/record.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { type Made, makeSigner, makeWriter, SESSION, type Signer, until } from './support.ts'

export interface Sample {
  bytes: Buffer
  key: Uint8Array
  signer: Signer
  metadata: Metadata
  records: PlacedRecord[]
}

/** Makes a recording of some groups, each with its checkpoint. */
export async function makeSample(groups: number, session = SESSION, signer = makeSigner()): Promise<Sample> {
  const made: Made = await makeWriter({ session, signer })
  for (let index = 0; index < groups; index++) {
    const flushed = made.writer
    // A structured frame, then noise enough to fill a group, so that it is flushed now and not in half a
    // second.
    flushed.write(FRAME.command, 1, Buffer.from(JSON.stringify({ line: `command ${index}` })))
    for (let part = 0; part < 4; part++)
      flushed.write(FRAME.output, 1, index === 0 ? Buffer.alloc(65_536) : randomBytes(65_530))
    made.clock.time += 400_000
    await until(() => made.writer.backlog < 200_000)
  }
  await made.writer.close({ result: 'success' })
  const bytes = await readFile(made.path)
  return { bytes, key: made.grant.key, signer, metadata: made.grant.metadata, records: recordsOf(bytes) }
}

export function recordsOf(bytes: Buffer): PlacedRecord[] {
  const parser = new RecordParser()
  parser.push(bytes)
  parser.header()
  const records: PlacedRecord[] = []
  for (let record = parser.next(); record; record = parser.next()) records.push(record)
  return records
}

/** Builds the file of a forger that changes records and repairs all links, with the signer at hand or not. */
export async function rebuild(
  metadata: Metadata,
  records: readonly PlacedRecord[],
  resign?: Signer,
): Promise<Buffer> {
  const header = encodeHeader(metadata)
  const chain = new Chain(parseHeader(header).session, header.subarray(-LINK_LENGTH), 0, header.length)
  const parts: Buffer[] = [header]
  for (const record of records) {
    const parsed = record.type === RECORD.checkpoint && resign ? parseCheckpoint(record.body) : undefined
    parts.push(
      ...(parsed && resign
        ? await chain.checkpoint(encodeCheckpoint(parsed.checkpoint), resign.sign)
        : chain.add(record.type, [record.body])),
    )
  }
  return Buffer.concat(parts)
}
