/**
 * Records, or recovers a recording, and kills itself at a write: `node dying-child.ts record|recover ROOT KEY
 * SESSION NUMBER` with the signing key as PKCS#8 in base64. At the call of that number, from 1, that changes
 * a file or syncs it, it writes half of the bytes and kills itself. While it records it prints `key HEX`, and
 * `proved COUNT` when the writer reports that many frames on the disk.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey } from 'node:crypto'
import { writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { FRAME } from '../../../recordings/container/frames.ts'
import { RecordingWriter } from '../../../recordings/container/writer.ts'
import { findRecording } from '../../../recordings/storage/catalog.ts'
import { recoverRecording } from '../../../recordings/storage/recover.ts'
import { BEGIN, fileIn, ManualClock, prepare, signerOf } from '../support.ts'

const FRAMES = 4

const [what, root = '', key = '', session = '', number = ''] = process.argv.slice(2)
const signer = signerOf(createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' }))
const say = (line: string) => writeSync(1, `${line}\n`)

const handle = await open(import.meta.filename)
const prototype: FileHandle = Object.getPrototypeOf(handle)
await handle.close()
let calls = 0

/** Makes the call, or half of it, and kills the process. */
function dying<Args extends unknown[], Result>(
  method: (this: FileHandle, ...args: Args) => Promise<Result>,
  half: (file: FileHandle, ...args: Args) => Promise<unknown>,
): (this: FileHandle, ...args: Args) => Promise<Result> {
  return async function (this: FileHandle, ...args: Args) {
    if (++calls === Number(number)) {
      await half(this, ...args)
      process.kill(process.pid, 'SIGKILL')
    }
    return await method.call(this, ...args)
  }
}
const { writev, datasync, sync, truncate } = prototype
/** The overload with positions. */
type Write = (bytes: Buffer, offset?: number, length?: number, position?: number) => Promise<unknown>
const write = prototype.write as Write
const nothing = async () => undefined
prototype.writev = dying(writev, async (file, parts) => {
  const bytes = Buffer.concat(parts.map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength)))
  await write.call(file, bytes, 0, Math.floor(bytes.length / 2))
}) as typeof writev
prototype.write = dying(write, async (file, bytes, offset = 0, length = bytes.length, position?: number) => {
  await write.call(file, bytes, offset, Math.floor(length / 2), position)
}) as typeof prototype.write
prototype.datasync = dying(datasync, nothing)
prototype.sync = dying(sync, nothing)
prototype.truncate = dying(truncate, nothing)

if (what === 'record') {
  const { grant, directory } = await prepare(signer, { root, session })
  say(`key ${Buffer.from(grant.key).toString('hex')}`)
  const clock = new ManualClock()
  const onFailure = (error: Error) => {
    throw error
  }
  const create = fileIn(directory)
  const writer = await RecordingWriter.open(grant, { create, sign: signer.sign, clock, onFailure })
  say('proved 0')
  for (let count = 1; count <= FRAMES; count++) {
    clock.time += 1000
    writer.write(FRAME.output, 1, Buffer.from(`frame ${count} `.repeat(200)))
    await writer.flush()
    say(`proved ${count}`)
  }
  const { state } = await writer.close({ result: 'success' })
  say(state)
} else {
  const { directory } = (await findRecording(root, session))!
  const { outcome } = await recoverRecording(directory, session, {
    sign: signer.sign,
    trusted: [signer.raw],
    now: () => BEGIN + 60_000,
  })
  say(outcome)
}
