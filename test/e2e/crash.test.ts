/**
 * The broker's ends, wanted and unwanted: kill -9, a full disk, SIGTERM, and a second broker on the same
 * data.
 */
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Broker, startBroker } from '../peers/broker.ts'
import { ssh } from '../peers/openssh.ts'
import { freePort } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { loopOf, PRINT_CLOCK } from '../peers/ticker.ts'
import { until } from '../until.ts'
import { type Bastion, eventsIn, type SessionRow, startBastion } from './bastion.ts'
import { fieldsOf, framesOf, sallyport, streamOf } from './recorded.ts'

/** Prints a line every 10 ms with the clock's nanoseconds. */
const TICKER = loopOf(PRINT_CLOCK, 0.01, 3000)
const MILLISECONDS = 1_000_000n
/** For tests that start several brokers: on a busy machine each takes seconds. */
const SLOW = { timeout: 300_000 }

const running = async (broker: Broker): Promise<SessionRow> =>
  await until('a running session', async () => {
    const [row] = await broker.must<SessionRow[]>('GET', '/sessions?status=current')
    return row
  })
const sessionOf = (broker: Broker, id: string) => broker.must<SessionRow>('GET', `/sessions/${id}`)

describeWithPeers('the broker', ['sshd', 'ssh'], () => {
  describe('killed in the middle of a session', () => {
    let bastion: Bastion
    let again: Broker
    let session: SessionRow
    let killedAt: bigint
    let client: Awaited<ReturnType<typeof ssh>>

    beforeAll(async () => {
      bastion = await startBastion({ credential: 'password' })
      const { broker } = bastion
      const ended = ssh(bastion.home, bastion.login(), [TICKER], { timeout: 300_000 })
      session = await running(broker)
      await sleep(3_300)
      killedAt = BigInt(Date.now())
      await broker.kill()
      client = await ended
      again = await startBroker({ dataFolder: broker.dataFolder, ports: broker.ports })
    })
    afterAll(async () => {
      await again.stop()
      await bastion.stop()
    })

    test('the client had all until then', () => {
      expect(client.code).toBe(255)
      const last = BigInt(client.stdout.trim().split('\n').at(-1)!) / MILLISECONDS
      expect(killedAt - last).toBeLessThan(500n)
    })

    test('the next start seals the recording, and the audit and the session say what is missing', async () => {
      expect(await again.must('GET', '/sessions?status=current')).toEqual([])
      const row = await sessionOf(again, session.id)
      expect(row).toMatchObject({ result: 'lost', recording: { state: 'recovered' } })
      expect(row.reason).toMatch(
        /^the broker ended without closing it; its recording is sealed up to \d{4}-.*Z/,
      )
      expect(row.reason).toContain('at most the last second before the end is missing')
      const events = eventsIn(again.log())
      expect(events).toContainEqual(
        expect.objectContaining({
          event: 'recording.recovered',
          severity: 'warning',
          session: session.id,
          user: 'ops1',
          size: row.recording?.size,
          digest: row.recording?.digest,
        }),
      )
      expect(events).toContainEqual(
        expect.objectContaining({ event: 'session.close', session: session.id, result: 'failure' }),
      )
    })

    test('what is there verifies, and at most the last second is missing', async () => {
      const verified = await sallyport(again, ['recordings', 'verify', session.id])
      expect(verified).toMatchObject({ code: 0, stderr: '' })
      expect(verified.stdout).toContain(`${session.id}  ok, recovered`)
      const ticks = streamOf(await framesOf(again, session.id), 'output')
        .toString()
        .trim()
        .split('\n')
      const last = BigInt(ticks.at(-1)!) / MILLISECONDS
      expect(killedAt - last).toBeLessThan(1_000n)
      // No line is missing from the first one on.
      const seen = client.stdout.trim().split('\n')
      expect(ticks).toEqual(seen.slice(0, ticks.length))
    })

    test('people can work again, and a start after an orderly one recovers nothing', SLOW, async () => {
      const done = await ssh(bastion.home, bastion.login(), ['echo back'])
      expect(done).toMatchObject({ code: 0, stdout: 'back\n' })
      const { reason } = await sessionOf(again, session.id)
      await again.stop()
      again = await startBroker({ dataFolder: bastion.broker.dataFolder, ports: bastion.broker.ports })
      expect(eventsIn(again.log()).map(({ event }) => event)).not.toContain('recording.recovered')
      expect(await sessionOf(again, session.id)).toMatchObject({ result: 'lost', reason })
    })

    test('the chain of the audit log is in order across the crash', async () => {
      const verified = await sallyport(again, ['audit', 'verify'])
      expect(verified).toMatchObject({ code: 0, stderr: '' })
      expect(verified.stdout).toMatch(/^ok: \d+ rows/)
    })
  })

  describe('with a full disk', () => {
    const FLOOR = 256 * 1024
    const VOLUME = 12 * 1024 * 1024
    let bastion: Bastion
    let volume: string
    let filler: string

    beforeAll(async () => {
      volume = mkdtempSync(join(tmpdir(), 'sallyport-volume-'))
      filler = join(volume, 'filler')
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${VOLUME},mode=700`, 'tmpfs', volume])
      bastion = await startBastion({
        credential: 'password',
        broker: { config: { recordings: { dir: join(volume, 'recordings'), min_free: '256KiB' } } },
      })
    })
    afterAll(async () => {
      await bastion.stop()
      execFileSync('umount', ['-l', volume])
      rmSync(volume, { recursive: true, force: true })
    })

    /** Fills the volume up to this many free bytes. */
    function leave(bytes: number): void {
      writeFileSync(filler, randomBytes(Math.max(0, free() - bytes)), { flag: 'a' })
    }

    function free(): number {
      const out = execFileSync('df', ['-B1', '--output=avail', volume]).toString()
      return Number(out.trim().split('\n').at(-1))
    }

    async function expectFailed(session: SessionRow, stderr: string): Promise<void> {
      expect(stderr).toMatch(/sallyport: the recording cannot be written: (the disk is full|ENOSPC)/)
      expect(session).toMatchObject({ result: 'failure', recording: { state: 'failed' } })
      expect(session.reason).toContain('the recording cannot be written')
      const failed = await until('recording.failed', async () =>
        (await bastion.events('recording.failed')).find((one) => one['session'] === session.id),
      )
      expect(failed).toMatchObject({ severity: 'alert', user: 'ops1', reason: session.reason })
    }

    test('a flood that the volume does not hold: the session ends with the reason', SLOW, async () => {
      const flood = ['head -c 200000000 /dev/urandom; echo never']
      const done = await ssh(bastion.home, bastion.login(), flood, { timeout: 300_000 })
      expect(done.code).toBe(255)
      expect(done.bytes.length).toBeLessThan(100_000_000)
      const [session] = await bastion.closedSessions(1)
      await expectFailed(session!, done.stderr)

      const frames = await framesOf(bastion.broker, session!.id)
      const kept = streamOf(frames, 'output')
      expect(kept.length).toBeGreaterThan(VOLUME / 2)
      expect(kept.equals(done.bytes.subarray(0, kept.length))).toBe(true)
      const verified = await sallyport(bastion.broker, ['recordings', 'verify', session!.id])
      expect(verified.stdout).toMatch(/ ok, (failed|recovered): /)
      expect(verified.code).toBe(0)
    })

    test('while it is full no session is opened, and the user reads why', async () => {
      leave(FLOOR / 2)
      const before = await bastion.closedSessions()
      const done = await ssh(bastion.home, bastion.login(), ['echo never'])
      expect({ code: done.code, stdout: done.stdout }).toEqual({ code: 255, stdout: '' })
      expect(done.stderr).toBe(
        'sallyport: the disk is full, and the session cannot be recorded, so it is not opened: tell an administrator\r\n',
      )
      const denied = await bastion.events('session.denied', 1)
      expect(denied.at(-1)).toMatchObject({ user: 'ops1', device: 'srv1' })
      expect(denied.at(-1)?.['reason']).toMatch(/expected 262144 bytes free for recordings/)
      expect(await bastion.closedSessions()).toHaveLength(before.length)
      expect(await bastion.broker.must('GET', '/sessions?status=current')).toEqual([])
    })

    test('with room again all is well; filled up during a session, the session ends', SLOW, async () => {
      truncateSync(filler)
      rmSync(join(volume, 'recordings'), { recursive: true })
      mkdirSync(join(volume, 'recordings'), { mode: 0o700 })
      // The indexing thread may still have the removed one open.
      await until('room', () => (free() > VOLUME / 2 ? true : undefined))
      const before = await bastion.closedSessions()
      const ended = ssh(bastion.home, bastion.login(), [TICKER], { timeout: 300_000 })
      await running(bastion.broker)
      await sleep(1_000)
      leave(FLOOR / 2)
      const done = await ended
      expect(done.code).toBe(255)
      const session = (await bastion.closedSessions(before.length + 1)).at(-1)!
      await expectFailed(session, done.stderr)

      const verified = await sallyport(bastion.broker, ['recordings', 'verify', session.id])
      expect(verified).toMatchObject({ code: 0, stderr: '' })
      expect(verified.stdout).toContain('ok, failed')
      // There was room for the end: all output that the client saw is recorded.
      const frames = await framesOf(bastion.broker, session.id)
      expect(streamOf(frames, 'output').toString()).toContain(done.stdout.trim().split('\n').at(-1))
      expect(fieldsOf(frames, 'end')).toMatchObject([{ result: 'failure', reason: session.reason }])
    })

    test('or it goes on without a recording, where its policy says so', SLOW, async () => {
      truncateSync(filler)
      await until('room', () => (free() > VOLUME / 2 ? true : undefined))
      await bastion.broker.must('PUT', '/connectionpolicies/SSH', { past_min_free: 'go_on' })
      const before = await bastion.closedSessions()
      const ended = ssh(
        bastion.home,
        bastion.login(),
        [`${TICKER} & sleep 8; kill $!; sleep 1; echo after`],
        {
          timeout: 300_000,
        },
      )
      const { id } = await running(bastion.broker)
      await sleep(1_000)
      leave(FLOOR / 2)
      const told = await until('channel.unrecorded', async () =>
        (await bastion.events('channel.unrecorded')).find((one) => one['session'] === id),
      )
      expect(told).toMatchObject({ severity: 'warning', user: 'ops1' })
      expect(told['reason']).toContain('the session goes on, as its policy says')
      const done = await ended
      expect(done).toMatchObject({ code: 0, stderr: '' })
      expect(done.stdout.endsWith('after\n')).toBe(true)
      const session = (await bastion.closedSessions(before.length + 1)).at(-1)!
      expect(session).toMatchObject({ id, result: 'success', recording: { state: 'failed' } })
      const failed = (await bastion.events('recording.failed')).find((one) => one['session'] === id)
      expect(failed).toMatchObject({ severity: 'alert' })

      expect((await sallyport(bastion.broker, ['recordings', 'verify', id])).code).toBe(0)
      const frames = await framesOf(bastion.broker, id)
      expect(streamOf(frames, 'output').toString()).not.toContain('after')
      expect(fieldsOf(frames, 'end')).toMatchObject([
        { result: 'failure', reason: expect.stringContaining('bytes free for recordings') },
      ])
    })
  })

  test('starts though a recording cannot be sealed, and seals it when it can', SLOW, async () => {
    const volume = mkdtempSync(join(tmpdir(), 'sallyport-volume-'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m,mode=700', 'tmpfs', volume])
    const config = { recordings: { dir: join(volume, 'recordings'), min_free: '64KiB' } }
    const bastion = await startBastion({ credential: 'password', broker: { config } })
    const { dataFolder, ports } = bastion.broker
    const restart = () => startBroker({ dataFolder, ports, config })
    let again: Broker | undefined
    try {
      const ended = ssh(bastion.home, bastion.login(), [TICKER], { timeout: 300_000 })
      const session = await running(bastion.broker)
      await sleep(1_000)
      await bastion.broker.kill()
      await ended
      execFileSync('mount', ['-o', 'remount,ro', volume])
      again = await restart()
      expect(eventsIn(again.log())).toContainEqual(
        expect.objectContaining({
          event: 'recording.failed',
          session: session.id,
          reason: expect.stringContaining('EROFS'),
        }),
      )
      const done = await ssh(bastion.home, bastion.login(), ['echo never'])
      expect(done.stderr).toContain('the session cannot be recorded')
      await again.stop()

      execFileSync('mount', ['-o', 'remount,rw', volume])
      again = await restart()
      expect(await sessionOf(again, session.id)).toMatchObject({
        result: 'lost',
        recording: { state: 'recovered' },
      })
      expect((await sallyport(again, ['recordings', 'verify', session.id])).stdout).toContain('ok, recovered')
    } finally {
      await again?.stop()
      await bastion.stop()
      execFileSync('umount', ['-l', volume])
      rmSync(volume, { recursive: true, force: true })
    }
  })

  describe('stopped by SIGTERM', () => {
    test('runs its sessions out for the grace, then ends the others with a reason', SLOW, async () => {
      const dataFolder = mkdtempSync(join(tmpdir(), 'sallyport-data-'))
      const bastion = await startBastion({
        credential: 'password',
        broker: { dataFolder, config: { shutdown_grace: '4s' } },
      })
      const { broker } = bastion
      try {
        const short = ssh(bastion.home, bastion.login(), ['sleep 2; echo finished'])
        const long = ssh(bastion.home, bastion.login(), ['echo begun; sleep 1000'])
        await until('both', async () => {
          const rows = await broker.must<SessionRow[]>('GET', '/sessions?status=current')
          return rows.length === 2 ? rows : undefined
        })
        await sleep(500)
        const begin = Date.now()
        process.kill(broker.pid, 'SIGTERM')
        await sleep(300)
        const late = await ssh(bastion.home, bastion.login(), ['echo late'])
        expect({ code: late.code, stdout: late.stdout }).toEqual({ code: 255, stdout: '' })

        expect(await short).toMatchObject({ code: 0, stdout: 'finished\n', stderr: '' })
        const ended = await long
        expect(ended).toMatchObject({ code: 255, stdout: 'begun\n' })
        expect(ended.stderr).toContain('sallyport: the bastion is stopping (SIGTERM)')
        expect(Date.now() - begin).toBeGreaterThan(3_500)
        await until('the end of the broker', () => (existsSync(`/proc/${broker.pid}`) ? undefined : true))
        expect(existsSync(join(dataFolder, 'sallyport.pid'))).toBe(false)
        expect(eventsIn(broker.log()).slice(-2)).toMatchObject([
          { event: 'service.stop' },
          { event: 'audit.checkpoint' },
        ])

        const again = await startBroker({ dataFolder, ports: broker.ports })
        try {
          expect(await again.must('GET', '/sessions?status=closed&sort=end&fields=result,reason')).toEqual([
            { result: 'success', reason: null },
            { result: 'killed', reason: 'the bastion is stopping (SIGTERM)' },
          ])
          expect((await sallyport(again, ['recordings', 'verify'])).stdout).toMatch(
            /^(\S+ {2}ok, sealed.*\n){2}$/,
          )
        } finally {
          await again.stop()
        }
      } finally {
        await bastion.stop()
        rmSync(dataFolder, { recursive: true, force: true })
      }
    })
  })

  test('is alone on its data: a second one is refused and says who holds it', async () => {
    const bastion = await startBastion({ credential: 'password' })
    const { broker } = bastion
    try {
      const ports = { https: await freePort(), ssh: await freePort(), metrics: await freePort() }
      await expect(startBroker({ dataFolder: broker.dataFolder, ports })).rejects.toThrow(
        `sallyport: the data folder ${broker.dataFolder} is in use by process ${broker.pid}: stop that broker first`,
      )
      expect(readFileSync(join(broker.dataFolder, 'sallyport.pid'), 'utf8')).toBe(`${broker.pid}\n`)
      expect(await ssh(bastion.home, bastion.login(), ['echo still'])).toMatchObject({ stdout: 'still\n' })
    } finally {
      await bastion.stop()
    }
  })
})
