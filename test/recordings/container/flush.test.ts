/** Promises of `flush`: on the disk, under a checkpoint, soon. */
import { Buffer } from 'node:buffer'
import { copyFileSync, statSync } from 'node:fs'
import { afterAll, describe, expect, test } from 'vitest'
import { MAX_FRAME_PAYLOAD } from '../../../recordings/container/format/limits.ts'
import { FRAME } from '../../../recordings/container/frames.ts'
import { makeSigner, makeWriter, readFrames, removeRoots } from '../support.ts'

afterAll(removeRoots)

const text = (value: string) => Buffer.from(value)

describe('a flush', () => {
  test('puts what was accepted on the disk under a checkpoint, without waiting for the group to fill', async () => {
    const signer = makeSigner()
    let signatures = 0
    const sign = (statement: Uint8Array) => {
      signatures++
      return signer.sign(statement)
    }
    const { writer, path, grant } = await makeWriter({ signer, sign })
    for (let turn = 1; turn <= 20; turn++) {
      writer.write(FRAME.output, 1, text(`line ${turn}`))
      await writer.flush()
      expect(writer.accepted).toBe(turn)
      // Copy the bytes that a kill at this moment would leave.
      copyFileSync(path, `${path}.now`)
      expect(await readFrames(`${path}.now`, grant.key)).toHaveLength(turn)
      expect(signatures).toBe(turn + 1)
    }
    expect((await writer.close({ result: 'success' })).state).toBe('sealed')
    await writer.flush()
  })

  test('is shared by those who ask while the disk is busy', async () => {
    let signatures = 0
    const signer = makeSigner()
    const { writer } = await makeWriter({
      sign: async (statement) => {
        signatures++
        return await signer.sign(statement)
      },
      signer,
    })
    const before = signatures
    const asked: Promise<void>[] = []
    for (let turn = 0; turn < 50; turn++) {
      writer.write(FRAME.output, 1, text('x'))
      asked.push(writer.flush())
    }
    await Promise.all(asked)
    expect(signatures - before).toBeLessThanOrEqual(3)
    await writer.close({ result: 'success' })
  })

  test('of nothing is there at once, and adds nothing to the file', async () => {
    const { writer, path } = await makeWriter()
    const { size } = statSync(path)
    await writer.flush()
    expect(statSync(path).size).toBe(size)
    await writer.close({ result: 'success' })
  })

  test('rejects when the recording fails, for those who wait and for those who come', async () => {
    let isBroken = false
    const signer = makeSigner()
    const { writer } = await makeWriter({
      sign: (statement) => (isBroken ? Promise.reject(new Error('no key')) : signer.sign(statement)),
      signer,
    })
    isBroken = true
    writer.write(FRAME.output, 1, text('never shown'))
    await expect(writer.flush()).rejects.toThrow('no key')
    writer.write(FRAME.output, 1, text('nor this'))
    await expect(writer.flush()).rejects.toThrow('no key')
    expect((await writer.close({ result: 'failure' })).state).toBe('failed')
  })

  test('counts frames as a reader does: pieces of streams, structured payloads whole', async () => {
    const { writer, path, grant } = await makeWriter()
    writer.write(FRAME.output, 1, Buffer.alloc(3 * MAX_FRAME_PAYLOAD + 1))
    writer.write(FRAME.command, 1, text(JSON.stringify({ line: 'x'.repeat(3 * MAX_FRAME_PAYLOAD) })))
    await writer.flush()
    expect(writer.accepted).toBe(5)
    expect(await readFrames(path, grant.key)).toHaveLength(5)
    await writer.close({ result: 'success' })
  })
})
