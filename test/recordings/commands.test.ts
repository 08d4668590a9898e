import { Buffer } from 'node:buffer'
import { readFileSync, writeFileSync } from 'node:fs'
import { Writable } from 'node:stream'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  exportRecording,
  listRecordings,
  playRecording,
  type RecordingCommands,
  verifyRecording,
} from '../../recordings/commands.ts'
import { FRAME } from '../../recordings/container/frames.ts'
import { makeIdentity, unwrapKey } from '../../recordings/container/keys.ts'
import { identity, makeRoot, makeSigner, makeWriter, removeRoots, SESSION } from './support.ts'

afterAll(removeRoots)

const signer = makeSigner()
const root = makeRoot()
const OTHER = '01JD0000000000000000000002'
let damaged = ''

beforeAll(async () => {
  for (const session of [SESSION, OTHER]) {
    const { writer, clock, path } = await makeWriter({ signer, root, session })
    const terminal = { type: 'xterm', columns: 80, rows: 24 }
    const open = { kind: 'shell', subprotocol: 'SSH_SHELL', terminal }
    writer.write(FRAME.channelOpen, 2, Buffer.from(JSON.stringify(open)))
    clock.time += 250_000
    writer.write(FRAME.output, 2, Buffer.from('# \x1b]0;x\x07hi\r\n'))
    await writer.close({ result: 'success' })
    if (session === OTHER) damaged = path
  }
})

async function run(
  action: (commands: RecordingCommands) => Promise<unknown>,
  changed: Partial<RecordingCommands> = {},
) {
  let shown = ''
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      shown += chunk
      done()
    },
  })
  const unwrap = (wrapped: Uint8Array) => unwrapKey(wrapped, identity)
  const told: string[] = []
  const tell = (line: string) => void told.push(line)
  const answer = await action({ root, unwrap, trusted: [signer.raw], stdout, tell, ...changed })
  return { shown, answer, told }
}

describe('recordings', () => {
  test('list', async () => {
    const { shown } = await run((commands) => listRecordings(commands, { json: false }))
    const [first, second] = shown.split('\n')
    expect(first).toMatch(
      /^01JD0000000000000000000001 {2}sealed {5}\s*\d+ {2}2026-11-20T12:00:00.000Z {2}user=ops1/,
    )
    expect(second).toMatch(/^01JD0000000000000000000002 {2}sealed/)
    const json = await run((commands) => listRecordings(commands, { json: true }))
    expect(
      json.shown
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { session: SESSION, state: 'sealed', frames: 3 },
      { session: OTHER, state: 'sealed', frames: 3 },
    ])
    expect(
      (await run((commands) => listRecordings(commands, { json: true }), { root: '/nonexistent' })).shown,
    ).toBe('')
  })

  test('export', async () => {
    const cast = await run((commands) => exportRecording(commands, SESSION, { format: 'cast' }))
    expect(cast.shown.split('\n')[1]).toBe('[0.25,"o","# hi\\r\\n"]')
    const text = await run((commands) => exportRecording(commands, SESSION, { format: 'txt' }))
    expect(text.shown.split('\n')[1]).toBe('# hi')
    const json = await run((commands) => exportRecording(commands, SESSION, { format: 'json' }))
    expect(json.shown.trimEnd().split('\n')).toHaveLength(3)
    const unknown = run((commands) => exportRecording(commands, 'nobody\x1b[2J', { format: 'txt' }))
    await expect(unknown).rejects.toThrow('there is no recording of session nobody\\u001b[2J')
    const stranger = await makeIdentity()
    const unwrap = (wrapped: Uint8Array) => unwrapKey(wrapped, stranger)
    const foreign = run((commands) => exportRecording(commands, SESSION, { format: 'txt' }), { unwrap })
    await expect(foreign).rejects.toMatchObject({ code: 'wrong_key' })
  })

  test('play', async () => {
    const begin = Date.now()
    const { shown } = await run((commands) => playRecording(commands, SESSION, { speed: 2 }))
    expect(Date.now() - begin).toBeGreaterThanOrEqual(120)
    expect(shown.startsWith('# hi\r\n')).toBe(true)
    await expect(run((commands) => playRecording(commands, SESSION, { speed: 0 }))).rejects.toThrow('speed')
  })

  test('verify', async () => {
    const good = await run((commands) => verifyRecording(commands, SESSION, { json: false }))
    expect(good.answer).toBe(true)
    expect(good.shown).toMatch(
      /^01JD0000000000000000000001 {2}ok, sealed: \d+ bytes, 3 frames, digest [0-9a-f]{64}\n$/,
    )
    const bytes = readFileSync(damaged)
    const at = bytes.length - 300
    bytes[at] = (bytes[at] ?? 0) ^ 4
    writeFileSync(damaged, bytes)
    const all = await run((commands) => verifyRecording(commands, undefined, { json: true }))
    expect(all.answer).toBe(false)
    expect(
      all.shown
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { session: SESSION, ok: true },
      { session: OTHER, ok: false, fault: { code: 'damaged_record' } },
    ])
    const distrusted = await run((commands) => verifyRecording(commands, SESSION, { json: false }), {
      trusted: [],
    })
    expect(distrusted.answer).toBe(false)
    expect(distrusted.shown).toMatch('unknown_signer: signed by')
    await expect(run((commands) => verifyRecording(commands, 'nobody', { json: false }))).rejects.toThrow(
      'no recording',
    )
  })
})
