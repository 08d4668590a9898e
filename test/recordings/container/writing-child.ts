/**
 * Records until it is killed: `node writing-child.ts ROOT KEY SESSION…` with the signing key as PKCS#8 in
 * base64; a session whose name begins with B gets noise beside its frames. It prints, at once and in order,
 * `key SESSION HEX`; `tick NUMBER MILLISECONDS` when a frame of that number and time was written to every
 * recording; `synced SESSION BYTES` when a flush begins and all bytes of the earlier ones are on the disk;
 * and `disk NUMBER MILLISECONDS` at the beginning and at the end of each sync.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, randomBytes } from 'node:crypto'
import { writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { parseStatement } from '../../../recordings/container/format/checkpoint.ts'
import { LINK_LENGTH, SIGNATURE_LENGTH } from '../../../recordings/container/format/limits.ts'
import { RECORD_HEADER_LENGTH } from '../../../recordings/container/format/record.ts'
import { FRAME } from '../../../recordings/container/frames.ts'
import { BACKLOG_LIMIT, RecordingWriter } from '../../../recordings/container/writer.ts'
import { fileIn, prepare, signerOf } from '../support.ts'

/** Body of an interim checkpoint before its signature. */
const INTERIM_LENGTH = 17
const CHECKPOINT_LENGTH = RECORD_HEADER_LENGTH + INTERIM_LENGTH + SIGNATURE_LENGTH + LINK_LENGTH

const [root = '', key = '', ...sessions] = process.argv.slice(2)
const signer = signerOf(createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' }))
const milliseconds = () => Number(process.hrtime.bigint() / 1_000_000n)
const say = (line: string) => writeSync(1, `${line}\n`)

async function opened(session: string): Promise<RecordingWriter> {
  const { grant, directory } = await prepare(signer, { root, session })
  let flushed = 0
  const writer = await RecordingWriter.open(grant, {
    create: fileIn(directory),
    async sign(statement) {
      say(`synced ${session} ${flushed}`)
      flushed = (parseStatement(Buffer.from(statement))?.offset ?? 0) + CHECKPOINT_LENGTH
      return signer.sign(statement)
    },
    clock: { now: Date.now, monotonic: () => process.hrtime.bigint() / 1000n },
    onFailure: (error) => {
      throw error
    },
  })
  say(`key ${session} ${Buffer.from(grant.key).toString('hex')}`)
  return writer
}

// A slow disk is no fault of the writer.
const handle = await open(import.meta.filename)
const prototype: FileHandle = Object.getPrototypeOf(handle)
await handle.close()
const { datasync } = prototype
let waits = 0
prototype.datasync = async function (this: FileHandle) {
  const number = waits++
  say(`disk ${number} ${milliseconds()}`)
  await datasync.call(this)
  say(`disk ${number} ${milliseconds()}`)
}

const writers = await Promise.all(sessions.map(opened))
const noise = randomBytes(20_000)
for (let count = 0; ; count++) {
  const time = milliseconds()
  for (const [i, writer] of writers.entries()) {
    writer.write(FRAME.output, 1, Buffer.from(`${count} ${time}`))
    if (sessions[i]?.startsWith('B')) writer.write(FRAME.output, 2, noise)
  }
  say(`tick ${count} ${time}`)
  for (const writer of writers) {
    if (writer.backlog > BACKLOG_LIMIT) await new Promise<void>((resolve) => writer.onDrain(resolve))
  }
  await new Promise((resolve) => setTimeout(resolve, 5))
}
