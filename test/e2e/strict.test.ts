/** Strict recording: all output that the client saw is in the recording, whenever the broker is killed. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { FILE_NAME, KEY_FILE_NAME } from '../../recordings/container/format/limits.ts'
import { FRAME, type Frame } from '../../recordings/container/frames.ts'
import { makeIdentity, recipientOf, unwrapKey } from '../../recordings/container/keys.ts'
import { RecordingReader } from '../../recordings/container/reader.ts'
import { readPieces } from '../../recordings/container/session-file.ts'
import { verifyStream } from '../../recordings/container/verify.ts'
import { recordingsIn } from '../../recordings/storage/catalog.ts'
import { type Broker, startBroker } from '../peers/broker.ts'
import { writeHomeFile } from '../peers/home.ts'
import { scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import type { RunResult } from '../peers/process.ts'
import { describeWithPeers } from '../peers/program.ts'
import { loopOf, PRINT_CLOCK } from '../peers/ticker.ts'
import { times } from '../times.ts'
import { ALL_RIGHTS, type Bastion, type SessionRow, startBastion } from './bastion.ts'

const KILLS = times(3, 10)
const FLOOD = 30_000
const LONG = { timeout: 300_000 }

const auditor = await makeIdentity()
const recipients = [await recipientOf(auditor)]

/** Lines with their position: slow ones, a flood, and in a terminal; `shown`: bytes until each has begun. */
const COMMANDS = [
  { command: loopOf('echo $n', 0.003, 100_000), flags: [], shown: 1 },
  { command: 'seq 100000000', flags: [], shown: FLOOD },
  { command: loopOf(PRINT_CLOCK, 0.001), flags: ['-tt'], shown: 1 },
  { command: loopOf('echo $n >&2; echo $n', 0.002, 100_000), flags: [], shown: 1 },
]

/** Returns all readable frames of a recording; none for a session that was killed before its first. */
async function recorded(directory: string): Promise<Frame[]> {
  if (!existsSync(join(directory, FILE_NAME))) return []
  const key = await unwrapKey(readFileSync(join(directory, KEY_FILE_NAME)), auditor)
  const reader = await RecordingReader.open(readPieces(join(directory, FILE_NAME)), key)
  const frames: Frame[] = []
  for await (const frame of reader.frames()) frames.push(frame)
  return frames
}

const outputOf = (frames: Frame[], type: number) =>
  Buffer.concat(frames.filter((frame) => frame.type === type).map(({ payload }) => payload))

function commandOf(frames: Frame[]): string {
  const open = frames.find(({ type }) => type === FRAME.channelOpen)
  return open ? String(JSON.parse(Buffer.from(open.payload).toString()).command) : ''
}

/**
 * Returns the output of the clients of `kills` brokers that were killed in the middle, by their commands: the
 * first at any moment, the others when each client has been shown something, and the flood much.
 */
async function killed(bastion: Bastion, kills: number): Promise<Map<string, RunResult>> {
  const had = new Map<string, RunResult>()
  const { dataFolder, ports } = bastion.broker
  let broker: Broker = bastion.broker
  for (let kill = 0; kill < kills; kill++) {
    const clients = COMMANDS.map(({ command, flags, shown }, index) => {
      const named = `: ${kill}/${index}; ${command}`
      const { promise: begun, resolve } = Promise.withResolvers<void>()
      let bytes = 0
      const onOutput = (data: Buffer): void => {
        bytes += data.length
        if (bytes >= shown) resolve()
      }
      const ended = ssh(bastion.home, bastion.login(), [named], { flags, onOutput, timeout: 300_000 })
      return { begun: Promise.race([begun, ended]), ended: ended.then((result) => had.set(named, result)) }
    })
    if (kill > 0) await Promise.all(clients.map(({ begun }) => begun))
    await sleep(Math.random() * 1_200)
    await broker.kill()
    await Promise.all(clients.map(({ ended }) => ended))
    broker = await startBroker({ dataFolder, ports, config: { recordings: { recipients } } })
  }
  await broker.stop()
  return had
}

describeWithPeers('strict recording', ['sshd', 'ssh', 'scp', 'sftp'], () => {
  const start = (mode: 'standard' | 'strict') =>
    startBastion({
      credential: 'password',
      subprotocols: ALL_RIGHTS,
      authorization: { recording_mode: mode },
      broker: { config: { recordings: { recipients } } },
    })

  describe('a broker that is killed at any moment', () => {
    let bastion: Bastion
    beforeEach(async () => {
      bastion = await start('strict')
      await bastion.broker.must('PUT', '/connectionpolicies/SSH', { recording_quota: 8 * 2 ** 30 })
    })
    afterEach(() => bastion.stop())

    test(`has on record all that ${KILLS * COMMANDS.length} clients were shown`, LONG, async () => {
      const had = await killed(bastion, KILLS)
      let shown = 0
      let compared = 0
      for await (const { directory, session } of recordingsIn(
        join(bastion.broker.dataFolder, 'recordings'),
      )) {
        const frames = await recorded(directory)
        const client = had.get(commandOf(frames))
        if (!client) continue
        compared++
        const output = outputOf(frames, FRAME.output)
        expect(output.subarray(0, client.bytes.length).equals(client.bytes), `${session}: output`).toBe(true)
        const errors = outputOf(frames, FRAME.errorOutput).toString()
        const lines = client.stderr.split('\n').filter((line) => /^\d+$/.test(line))
        expect(errors.startsWith(lines.join('\n')), `${session}: standard error`).toBe(true)
        shown += client.bytes.length
        const verified = await verifyStream(readPieces(join(directory, FILE_NAME)), { session })
        expect(verified).toMatchObject({ ok: true, state: 'recovered' })
      }
      expect(compared).toBeGreaterThanOrEqual((KILLS - 1) * COMMANDS.length)
      expect(shown).toBeGreaterThanOrEqual((KILLS - 1) * FLOOD)
    })
  })

  test('without it the last moments are missing, as they may', LONG, async () => {
    const bastion = await start('standard')
    try {
      const had = await killed(bastion, 2)
      let missing = 0
      for await (const { directory } of recordingsIn(join(bastion.broker.dataFolder, 'recordings'))) {
        const frames = await recorded(directory)
        const client = had.get(commandOf(frames))
        if (client && outputOf(frames, FRAME.output).length < client.bytes.length) missing++
      }
      expect(missing).toBeGreaterThan(0)
    } finally {
      await bastion.stop()
    }
  })

  test(
    'on a disk that fills up ends the session, and nothing was shown that is not on record',
    LONG,
    async () => {
      const volume = mkdtempSync(join(tmpdir(), 'sallyport-volume-'))
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m,mode=700', 'tmpfs', volume])
      const bastion = await startBastion({
        credential: 'password',
        authorization: { recording_mode: 'strict' },
        broker: {
          config: { recordings: { recipients, dir: join(volume, 'recordings'), min_free: '256KiB' } },
        },
      })
      try {
        const shown = await ssh(bastion.home, bastion.login(), ['cat /dev/urandom'], { timeout: 300_000 })
        expect(shown.code).toBe(255)
        expect(shown.stderr).toContain('sallyport: the recording cannot be written')
        const [session] = await bastion.closedSessions(1)
        expect(session).toMatchObject({ result: 'failure', recording: { state: 'failed' } })
        let compared = 0
        for await (const { directory } of recordingsIn(join(volume, 'recordings'))) {
          const output = outputOf(await recorded(directory), FRAME.output)
          expect(output.subarray(0, shown.bytes.length).equals(shown.bytes)).toBe(true)
          compared++
        }
        expect(compared).toBe(1)
        expect(shown.bytes.length).toBeGreaterThan(1_000_000)
      } finally {
        await bastion.stop()
        execFileSync('umount', ['-l', volume])
        rmSync(volume, { recursive: true, force: true })
      }
    },
  )

  describe('in use', () => {
    let bastion: Bastion
    beforeAll(async () => {
      bastion = await start('strict')
    })
    afterAll(() => bastion.stop())

    test('a shell echoes and ends, its last words included', async () => {
      const terminal = sshTerminal(bastion.home, bastion.login(), ['sh'])
      terminal.send('echo one; echo tw\\o\r')
      await terminal.expect('two')
      for (let key = 0; key < 20; key++) {
        terminal.send('x')
        await terminal.expect('x')
      }
      terminal.send('\x15echo la\\st; exit 3\r')
      await terminal.expect('last')
      expect(await terminal.exit()).toBe(3)
    })

    test('commands and files pass whole, and the reason of an end is read', LONG, async () => {
      const bytes = await ssh(bastion.home, bastion.login(), [
        'head -c 20000000 /dev/zero; echo end >&2; exit 5',
      ])
      expect(bytes).toMatchObject({ code: 5, stderr: 'end\n' })
      expect(bytes.bytes.length).toBe(20_000_000)
      const file = writeHomeFile(bastion.home, 'file', 'text\n'.repeat(600_000))
      expect((await scp(bastion.home, bastion.login(), file, { remote: 'strict' }, ['-O'])).code).toBe(0)
      expect((await sftp(bastion.home, bastion.login(), [`get strict ${file}.back`])).code).toBe(0)
      expect(readFileSync(`${file}.back`).equals(readFileSync(file))).toBe(true)

      const long = sshTerminal(bastion.home, bastion.login(), ['echo begun; sleep 100'])
      await long.expect('begun')
      const [row] = await bastion.broker.must<SessionRow[]>('GET', '/sessions?status=current')
      await bastion.broker.must('POST', `/sessions/${row!.id}/kill`, { reason: 'enough' })
      await long.expect('ended by admin: enough')
      expect(await long.exit()).toBe(255)
    })
  })
})
