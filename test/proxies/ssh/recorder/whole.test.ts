import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Quota } from '../../../../proxies/session/quota.ts'
import { classifyExec } from '../../../../proxies/ssh/codec/classify.ts'
import { recorderFor } from '../../../../proxies/ssh/recorder/factory.ts'
import { FRAME } from '../../../../recordings/container/frames.ts'
import { Notes } from './support/notes.ts'
import { sha256 } from './support/real.ts'

function exec(text: string, quota?: Quota, maySftp = true) {
  const notes = new Notes()
  const command = Buffer.from(text)
  const recorder = recorderFor(
    { kind: 'exec', command, classified: classifyExec(command) },
    { ...notes.options(quota), right: 'SSH_REMOTE_COMMAND', maySftp },
  )
  return { notes, recorder }
}

describe('a command without a terminal', () => {
  it('is recorded whole, streams apart', () => {
    const { notes, recorder } = exec('sh -c id')
    recorder.fromClient(Buffer.from('in'))
    recorder.fromTarget(Buffer.from('out'), false)
    recorder.fromTarget(Buffer.from('err'), true)
    recorder.exit({ status: 3 })
    recorder.close()
    expect(notes.frames.map(({ type, payload }) => [type, payload.toString()])).toEqual([
      [FRAME.channelOpen, '{"kind":"exec","subprotocol":"SSH_REMOTE_COMMAND","command":"sh -c id"}'],
      [FRAME.input, 'in'],
      [FRAME.output, 'out'],
      [FRAME.errorOutput, 'err'],
      [FRAME.exit, '{"status":3}'],
      [FRAME.channelClose, ''],
    ])
  })

  it('keeps a long command line whole, in several frames', () => {
    const text = `echo ${'x'.repeat(20_000)}`
    const { notes } = exec(text)
    const lines = notes.frames.slice(1).map((frame): string => JSON.parse(frame.payload.toString()).line)
    expect(`${notes.open.command}${lines.join('')}`).toBe(text)
    expect(Math.max(...notes.frames.map((frame) => frame.payload.length))).toBeLessThan(65_536)
  })

  it('passes the quota into count and hash, of any pieces', () => {
    const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 12 })
    fc.assert(
      fc.property(pieces, fc.nat(100), fc.nat(100), (data, session, perDirection) => {
        const { notes, recorder } = exec('x', new Quota(session, perDirection))
        for (const piece of data) recorder.fromClient(piece)
        recorder.close()
        const all = Buffer.concat(data)
        const limit = Math.min(session, perDirection)
        const rest = all.subarray(limit)
        expect(notes.bytes(FRAME.input)).toEqual(all.subarray(0, limit))
        const closing = { direction: 'in', reason: 'quota', bytes: rest.length, sha256: sha256(rest) }
        expect(notes.gaps).toEqual(rest.length === 0 ? [] : [{ direction: 'in', reason: 'quota' }, closing])
        const frames = notes.frames.filter((frame) => frame.type === FRAME.unrecorded)
        expect(frames.map((frame) => JSON.parse(frame.payload.toString()))).toEqual(notes.gaps)
      }),
    )
  })

  it('counts past the quota without a hash, if that is the policy', () => {
    const { notes, recorder } = exec('x', new Quota(10, 4, { past: 'count' }))
    for (const piece of ['abc', 'def', 'ghi']) recorder.fromClient(Buffer.from(piece))
    recorder.close()
    expect(notes.bytes(FRAME.input).toString()).toBe('abcd')
    expect(notes.gaps).toEqual([
      { direction: 'in', reason: 'quota' },
      { direction: 'in', reason: 'quota', bytes: 5 },
    ])
  })

  it('has no quota while there is no recording', () => {
    const recording = { isOn: true }
    const ended: string[] = []
    const quota = new Quota(10, 4, { past: 'end', end: () => ended.push('end'), recording })
    const { notes, recorder } = exec('x', quota)
    recorder.fromClient(Buffer.from('abc'))
    recording.isOn = false
    recorder.fromClient(Buffer.alloc(100))
    recorder.close()
    expect([ended, notes.gaps]).toEqual([[], []])
    expect(notes.bytes(FRAME.input).toString()).toBe('abc')
  })

  it('shares the quota of the session with its other channels', () => {
    const quota = new Quota(10, 8)
    const first = exec('x', quota)
    const second = exec('y', quota)
    first.recorder.fromTarget(Buffer.from('123456'), false)
    second.recorder.fromTarget(Buffer.from('123456'), false)
    expect(second.notes.bytes(FRAME.output).toString()).toBe('1234')
    expect(second.notes.gaps).toHaveLength(1)
  })
})

describe('SFTP within a command', () => {
  const init = Buffer.from([0, 0, 0, 5, 1, 0, 0, 0, 3])
  const version = Buffer.from([0, 0, 0, 5, 2, 0, 0, 0, 3])

  it.each([
    ['of the client', init, true],
    ['of the target', version, false],
  ])(
    'is seen in the first bytes %s, however they come, and nothing of them is kept',
    (_, bytes, isClient) => {
      for (const size of [1, 4, 9, 20]) {
        const { notes, recorder } = exec('/usr/lib/openssh/sftp-server', undefined, false)
        for (let at = 0; at < bytes.length; at += size) {
          const piece = bytes.subarray(at, at + size)
          if (isClient) recorder.fromClient(piece)
          else recorder.fromTarget(piece, false)
        }
        expect(notes.violations).toEqual(['SFTP within a command: the right SFTP_SESSION is missing'])
      }
    },
  )

  it('is allowed to users that may use SFTP', () => {
    const { notes, recorder } = exec('/usr/lib/openssh/sftp-server')
    recorder.fromClient(init)
    recorder.fromTarget(version, false)
    expect(notes.violations).toEqual([])
  })

  it('is not taken for something else', () => {
    const icon = Buffer.from([0, 0, 1, 0, 1, 0, 16, 16, 0, 0])
    const later = Buffer.concat([Buffer.from('x'), init])
    for (const data of [icon, later]) {
      const { notes, recorder } = exec('cat', undefined, false)
      recorder.fromClient(data)
      recorder.fromTarget(data, false)
      expect(notes.violations).toEqual([])
    }
  })
})
