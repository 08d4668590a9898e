/** The bytes that a session may write to disk, and the effect of more. */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ssh } from '../peers/openssh.ts'
import { describeWithPeers } from '../peers/program.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'
import { type ExportedFrame, fieldsOf, framesOf, streamOf } from './recorded.ts'

const MIB = 1024 * 1024
/** The most that the proxy may have read beyond a used-up quota. */
const ONE_TURN = 256 * 1024

describeWithPeers('quotas', ['sshd', 'ssh'], () => {
  let bastion: Bastion
  beforeAll(async () => {
    bastion = await startBastion({ credential: 'password' })
  })
  afterAll(() => bastion.stop())

  async function flood(
    policy: Record<string, unknown>,
    command: string,
    flags: string[] = [],
  ): Promise<{ done: Awaited<ReturnType<typeof ssh>>; session: SessionRow; frames: ExportedFrame[] }> {
    await bastion.broker.must('PUT', '/connectionpolicies/SSH', policy)
    const before = (await bastion.closedSessions()).length
    const done = await ssh(bastion.home, bastion.login(), [command], { flags, timeout: 300_000 })
    const session = (await bastion.closedSessions(before + 1)).at(-1)!
    return { done, session, frames: await framesOf(bastion.broker, session.id) }
  }

  test('a terminal past its quota ends the session, and all that was shown is on record', async () => {
    const policy = { terminal_quota: MIB, past_terminal_quota: 'end' }
    const { done, session, frames } = await flood(policy, 'seq 100000000', ['-tt'])
    expect(done.code).toBe(255)
    expect(done.stderr).toContain('sallyport: the recording quota of the session is used up')
    expect(session).toMatchObject({
      result: 'failure',
      reason: 'the recording quota of the session is used up',
      recording: { state: 'sealed' },
    })
    const output = streamOf(frames, 'output')
    expect(output.length).toBeGreaterThan(MIB)
    expect(output.length).toBeLessThan(MIB + 2 * ONE_TURN)
    expect(output.subarray(0, done.bytes.length).equals(done.bytes)).toBe(true)
    expect(fieldsOf(frames, 'unrecorded')).toEqual([])
  })

  test('or goes on by count and hash, as its policy says; command lines stay', async () => {
    const policy = { terminal_quota: MIB, past_terminal_quota: 'hash' }
    const { done, session, frames } = await flood(policy, 'seq 300000; echo end', ['-tt'])
    expect(done.stdout.endsWith('end\r\n')).toBe(true)
    expect(session).toMatchObject({ result: 'success', recording: { state: 'sealed' } })
    expect(session.recording!.size).toBeLessThan(2 * MIB)
    const kept = streamOf(frames, 'output')
    expect(kept.length).toBe(MIB)
    const rest = done.bytes.subarray(kept.length)
    expect(kept.equals(done.bytes.subarray(0, kept.length))).toBe(true)
    expect(fieldsOf(frames, 'unrecorded')).toEqual([
      { direction: 'out', reason: 'quota' },
      {
        direction: 'out',
        reason: 'quota',
        bytes: rest.length,
        sha256: createHash('sha256').update(rest).digest('hex'),
      },
    ])
    const told = await bastion.events('channel.unrecorded', 2)
    expect(told.at(-1)).toMatchObject({ session: session.id, size: rest.length })
  })

  test('a stream past the quota goes on by count and hash, or ends the session', async () => {
    const quota = { recording_quota: 4 * MIB }
    const hashed = await flood({ ...quota, past_recording_quota: 'hash' }, 'head -c 5000000 /dev/zero')
    expect(hashed.done.bytes.length).toBe(5_000_000)
    expect(streamOf(hashed.frames, 'output').length).toBe(MIB)
    expect(fieldsOf(hashed.frames, 'unrecorded').at(-1)).toMatchObject({ bytes: 5_000_000 - MIB })

    const ended = await flood({ ...quota, past_recording_quota: 'end' }, 'cat /dev/zero')
    expect(ended.done.code).toBe(255)
    expect(ended.done.stderr).toContain('the recording quota of the session is used up')
    const output = streamOf(ended.frames, 'output')
    expect(output.length).toBeLessThan(MIB + 2 * ONE_TURN)
    expect(output.length).toBeGreaterThanOrEqual(ended.done.bytes.length)
  })

  test('or goes on by count alone, as its policy says', async () => {
    const counted = await flood(
      { recording_quota: 4 * MIB, past_recording_quota: 'count' },
      'head -c 5000000 /dev/zero',
    )
    expect(counted.done.bytes.length).toBe(5_000_000)
    expect(fieldsOf(counted.frames, 'unrecorded')).toEqual([
      { direction: 'out', reason: 'quota' },
      { direction: 'out', reason: 'quota', bytes: 5_000_000 - MIB },
    ])
  })

  test('a session that is not recorded has no quota', async () => {
    const [authorization] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
    const path = `/authorizations/${authorization!.id}`
    await bastion.broker.must('PUT', path, { is_recorded: false })
    const quotas = { recording_quota: 64 * 1024, terminal_quota: 64 * 1024 }
    const past = { past_recording_quota: 'end', past_terminal_quota: 'end' }
    await bastion.broker.must('PUT', '/connectionpolicies/SSH', { ...quotas, ...past })
    for (const flags of [[], ['-tt']]) {
      const before = (await bastion.closedSessions()).length
      const { code, bytes } = await ssh(bastion.home, bastion.login(), ['head -c 3000000 /dev/zero'], {
        flags,
      })
      expect([code, bytes.length]).toEqual([0, 3_000_000])
      const session = (await bastion.closedSessions(before + 1)).at(-1)
      expect(session).toMatchObject({ result: 'success', is_recorded: false })
    }
  })
})
