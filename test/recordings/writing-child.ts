/**
 * Records until it is killed: `node writing-child.ts ROOT SESSION KEY BULK` with the signing key as PKCS#8 in base64.
 * Each frame says its number and the wall clock; with BULK=1 they are followed by noise.
 */
import { Buffer } from 'node:buffer'
import { createPrivateKey, randomBytes } from 'node:crypto'
import { FRAME } from '../../recordings/frames.ts'
import { BACKLOG_LIMIT, RecordingWriter } from '../../recordings/writer.ts'
import { prepare, signerOf } from './support.ts'

const [root = '', session = '', key = '', bulk] = process.argv.slice(2)
const signer = signerOf(createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' }))
const grant = await prepare(signer, { root, session })
const writer = await RecordingWriter.open(grant, {
  sign: signer.sign,
  clock: { now: Date.now, monotonic: () => process.hrtime.bigint() / 1000n },
  onFailure: (error) => {
    throw error
  },
})
process.stdout.write(`${Buffer.from(grant.key).toString('hex')}\n`)
const noise = randomBytes(50_000)
for (let count = 0; ; count++) {
  writer.write(FRAME.output, 1, Buffer.from(`${count} ${Date.now()}`))
  if (bulk === '1') writer.write(FRAME.output, 2, noise)
  if (writer.backlog > BACKLOG_LIMIT) await new Promise<void>((resolve) => writer.onDrain(resolve))
  await new Promise((resolve) => setTimeout(resolve, bulk === '1' ? 1 : 7))
}
