/** The recording of sessions of real clients: its content, its gaps, and its readers. */
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Frame } from '../../recordings/container/frames.ts'
import { RecordingReader } from '../../recordings/container/reader.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { ADMIN_PASSWORD, callApi, sallyportCommand } from '../peers/broker.ts'
import { git, rsync, scp, sftp, ssh, sshTerminal } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { openTerminal } from '../peers/terminal.ts'
import { createSystemUser, type SystemUser } from '../peers/users.ts'
import { type Bastion, type SessionRow, startBastion } from './bastion.ts'
import {
  type ExportedFrame,
  fieldsOf,
  filesBelow,
  filesWith,
  framesOf,
  sallyport,
  streamOf,
} from './recorded.ts'

const QUOTA = 16 * 1024 * 1024
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

let bastion: Bastion
/** An auditor's identity, beside the broker's own. */
let identity: string
const auditor = { folder: '' }

/** Runs `work`, and returns the session that ended after it. */
async function recorded(work: () => Promise<unknown>): Promise<SessionRow> {
  const before = await bastion.closedSessions()
  await work()
  return (await bastion.closedSessions(before.length + 1)).at(-1)!
}
const framesOfSession = (session: SessionRow) => framesOf(bastion.broker, session.id)
const recordingsFolder = () => join(bastion.broker.dataFolder, 'recordings')

describeWithPeers('recordings of', ['sshd', 'ssh', 'scp', 'sftp', 'rsync', 'git', 'age', 'asciinema'], () => {
  beforeAll(async () => {
    const made = await run('age-keygen', [])
    identity = made.stdout
    const recipient = /public key: (age1\S+)/.exec(`${made.stdout}${made.stderr}`)?.[1]
    bastion = await startBastion({
      credential: 'password',
      broker: { config: { recordings: { recipients: [recipient] } } },
    })
    auditor.folder = bastion.home.folder
    writeFileSync(join(auditor.folder, 'identity.txt'), identity, { mode: 0o600 })
  })
  afterAll(() => bastion.stop())

  describe('a shell on a terminal', () => {
    let session: SessionRow
    let frames: ExportedFrame[]
    let shown: Buffer
    let other: SystemUser
    const secret = `canary-${randomBytes(9).toString('hex')}`

    beforeAll(async () => {
      other = await createSystemUser()
      session = await recorded(async () => {
        const terminal = sshTerminal(bastion.home, bastion.login(), [], { columns: 101, lines: 41 })
        await terminal.expect('$ ')
        terminal.send('echo from"-the"-target\r')
        await terminal.expect('from-the-target\r\n')
        terminal.resize(120, 50)
        await sleep(300)
        terminal.send("stty size; read -s -p 'secret: ' x; echo got $(printf %s $x | wc -c)\r")
        await terminal.expect(/50 120[\s\S]*secret: $/)
        terminal.send(`${secret}\r`)
        await terminal.expect(`got ${secret.length}`)
        await terminal.expect('$ ')
        terminal.send(`su ${other.name} -c 'id -un'\r`)
        await terminal.expect('assword: ')
        // Typed by hand: one key after the other.
        for (const key of `${other.password}\r`) {
          terminal.send(key)
          await sleep(10)
        }
        await terminal.expect(`\n${other.name}\r\n`)
        await terminal.expect('$ ')
        terminal.send('exit 7\r')
        expect(await terminal.exit()).toBe(7)
        shown = terminal.bytes()
      })
      frames = await framesOfSession(session)
    })
    afterAll(() => other.remove())

    test('has the channel with its terminal, the resize, the exit and the end', () => {
      expect(frames[0]).toMatchObject({
        type: 'channel_open',
        data: {
          kind: 'shell',
          subprotocol: 'SSH_SHELL',
          terminal: { type: 'xterm-256color', columns: 101, rows: 41 },
        },
      })
      // The driver signals ssh in addition to the terminal's own signal: it may send the size twice.
      expect(fieldsOf(frames, 'resize').slice(0, 1)).toEqual([{ columns: 120, rows: 50 }])
      expect(fieldsOf(frames, 'exit')).toEqual([{ status: 7 }])
      expect(frames.slice(-2)).toMatchObject([
        { type: 'channel_close' },
        { type: 'end', data: { result: 'success' } },
      ])
      const times = frames.map(({ time }) => time)
      expect(times).toEqual([...times].sort((a, b) => a - b))
    })

    test('has the output to the byte, and the input that was echoed', () => {
      expect(streamOf(frames, 'output').equals(shown)).toBe(true)
      const input = streamOf(frames, 'input').toString()
      expect(input).toContain('echo from"-the"-target\r')
      expect(input).toContain(`su ${other.name} -c 'id -un'\r`)
      expect(input).toContain('exit 7\r')
    })

    test('has of what was typed without echo only the count', () => {
      const withheld = fieldsOf(frames, 'input_withheld').reduce((sum, { bytes }) => sum + Number(bytes), 0)
      expect(withheld).toBeGreaterThanOrEqual(secret.length + other.password.length)
      const everything = JSON.stringify(frames)
      expect(everything).toContain('from-the-target')
      for (const password of [secret, other.password]) expect(everything).not.toContain(password)
      // Single keys of the secret are not recorded either.
      expect(streamOf(frames, 'input').toString()).not.toContain(secret.slice(0, 8))
    })

    test('is accounted for by size, frames and digest', async () => {
      expect(session).toMatchObject({ result: 'success', is_recorded: true, subprotocols: ['SSH_SHELL'] })
      expect(session.recording).toMatchObject({ state: 'sealed', frames: frames.length })
      expect(session.bytes_out).toBe(shown.length)
      const entry = await findRecording(recordingsFolder(), session.id)
      const bytes = readFileSync(join(entry!.directory, 'session.rec'))
      expect(session.recording?.size).toBe(bytes.length)
      const sealed = (await bastion.events('recording.sealed', 1)).find(
        (one) => one['session'] === session.id,
      )
      expect(sealed).toMatchObject({ size: bytes.length, digest: session.recording?.digest })
    })

    test('the real age opens its key for an auditor, and nothing of it is in clear', async () => {
      const entry = (await findRecording(recordingsFolder(), session.id))!
      const keyFile = join(entry.directory, 'key.age')
      const args = ['-d', '-i', join(auditor.folder, 'identity.txt'), keyFile]
      const opened = await run(findProgram('age'), args)
      expect({ code: opened.code, stderr: opened.stderr }).toEqual({ code: 0, stderr: '' })
      const file = join(entry.directory, 'session.rec')
      const reader = await RecordingReader.open(createReadStream(file), opened.bytes)
      const all: Frame[] = []
      for await (const frame of reader.frames()) all.push(frame)
      expect(reader.ending).toBe('sealed')
      const payloads = Buffer.concat(all.map(({ payload }) => Buffer.from(payload)))
      expect(payloads.includes('from-the-target')).toBe(true)
      for (const password of [secret, other.password]) expect(payloads.includes(password)).toBe(false)
      expect(readFileSync(file).includes('from-the-target')).toBe(false)
    })

    test('no file of the broker holds a password: of the target, of the person, or typed', () => {
      const secrets = [secret, other.password, bastion.account.password, bastion.password, ADMIN_PASSWORD]
      expect(filesWith(bastion.broker.dataFolder, secrets)).toEqual([])
      for (const one of secrets) expect(bastion.broker.log()).not.toContain(one)
      // The search finds what exists: the user's name is in the database or its log of writes.
      expect(filesWith(bastion.broker.dataFolder, ['ops1']).map((file) => file.split('/').at(-1))).toEqual(
        expect.arrayContaining([expect.stringMatching(/^sallyport\.db/)]),
      )
      expect(filesBelow(bastion.broker.dataFolder).length).toBeGreaterThan(5)
    })

    test('is listed and verified on the command line', { timeout: 300_000 }, async () => {
      const list = await sallyport(bastion.broker, ['recordings', 'list'])
      expect(list.code).toBe(0)
      expect(list.stdout).toMatch(new RegExp(`^${session.id} +sealed +${session.recording?.size} `, 'm'))
      const json = await sallyport(bastion.broker, ['recordings', 'list', '--json'])
      const lines = json.stdout.trim().split('\n')
      expect(lines.map((line) => JSON.parse(line))).toContainEqual(
        expect.objectContaining({ session: session.id, state: 'sealed' }),
      )
      const one = await sallyport(bastion.broker, ['recordings', 'verify', session.id])
      expect(one).toMatchObject({ code: 0, stderr: '' })
      expect(one.stdout).toContain(`${session.id}  ok, sealed`)
      expect(one.stdout).toContain(session.recording?.digest)
      expect((await sallyport(bastion.broker, ['recordings', 'verify'])).code).toBe(0)
    })

    test('the cast shows in the ordinary asciinema what the person saw', async () => {
      const words = ['recordings', 'export', session.id, '--format', 'cast', '--raw']
      const cast = await sallyport(bastion.broker, words)
      expect(cast).toMatchObject({ code: 0, stderr: '' })
      const path = join(auditor.folder, 'session.cast')
      writeFileSync(path, cast.stdout)
      // `asciinema cat` needs a terminal even if its output goes elsewhere.
      const command = `${findProgram('asciinema')} cat ${path} > ${path}.shown`
      const done = await run('script', ['-qec', command, '/dev/null'], {
        env: { ...process.env, LC_ALL: 'C.UTF-8' },
      })
      expect(done.code).toBe(0)
      expect(readFileSync(`${path}.shown`).equals(shown)).toBe(true)
    })

    test('the text has the lines, and the replay shows them in a terminal', async () => {
      const text = await sallyport(bastion.broker, ['recordings', 'export', session.id, '--format', 'txt'])
      expect(text.code).toBe(0)
      expect(text.stdout).toContain('\nfrom-the-target\n')
      expect(text.stdout).not.toContain('\x1b')
      const words = [
        'recordings',
        'play',
        session.id,
        '--speed',
        '100',
        '--config',
        bastion.broker.configFile,
      ]
      const [command, args] = sallyportCommand(words)
      const terminal = openTerminal(command, args)
      await terminal.expect('from-the-target')
      terminal.send('q')
      expect(await terminal.exit()).toBe(0)
      expect(terminal.output().trimEnd().endsWith('\x1b[?1049l')).toBe(true)
    })

    test('the API gives the container and the exports as the command line does', {
      timeout: 300_000,
    }, async () => {
      const path = `/sessions/${session.id}/recording`
      const certificate = readFileSync(join(bastion.broker.dataFolder, 'tls', 'cert.pem'))
      for (const format of ['cast', 'cast3', 'txt', 'json', 'html']) {
        const byApi = await bastion.broker.api<string>('GET', `${path}.${format}`)
        expect(byApi.status).toBe(200)
        const words = ['recordings', 'export', session.id, '--format', format]
        const { stdout } = await sallyport(bastion.broker, words)
        expect(byApi.body).toBe(stdout)
      }
      const container = await bastion.broker.api<string>('GET', path)
      expect(container.status).toBe(200)
      const nobody = await callApi(bastion.broker.ports.https, certificate, 'GET', path)
      expect(nobody.status).toBe(401)
      const missing = await bastion.broker.api('GET', '/sessions/01JD0000000000000000000001/recording.cast')
      expect(missing.status).toBe(404)
    })
  })

  describe('file transfers: names, sizes and hashes, and not the bytes', () => {
    const marker = `content-${randomBytes(9).toString('hex')}`
    let content: Buffer
    let file: string
    const remote = (name: string) => join(bastion.account.home, name)
    beforeAll(() => {
      content = Buffer.concat([Buffer.from(`${marker}\n`.repeat(1000)), randomBytes(200_000)])
      file = join(bastion.home.folder, 'upload.bin')
      writeFileSync(file, content)
    })

    async function transfersOf(session: SessionRow, kind: string): Promise<Record<string, unknown>[]> {
      const frames = await framesOfSession(session)
      expect(frames[0]).toMatchObject({ type: 'channel_open', data: { kind } })
      expect(JSON.stringify(frames)).not.toContain(marker)
      expect(session.recording?.size).toBeLessThan(20_000)
      return fieldsOf(frames, 'file').filter(({ direction }) => direction !== undefined)
    }

    test('sftp', async () => {
      const commands = [
        `put ${file} ${remote('sftp.bin')}`,
        `get ${remote('sftp.bin')} ${file}.back`,
        `rename ${remote('sftp.bin')} ${remote('renamed.bin')}`,
        `mkdir ${remote('folder')}`,
        `rm ${remote('renamed.bin')}`,
        `-get ${remote('missing.bin')} ${file}.missing`,
      ]
      const session = await recorded(async () => {
        expect((await sftp(bastion.home, bastion.login(), commands)).code).toBe(0)
      })
      expect(readFileSync(`${file}.back`).equals(content)).toBe(true)
      const size = content.length
      const digest = sha256(content)
      expect(await transfersOf(session, 'sftp')).toMatchObject([
        { direction: 'up', path: remote('sftp.bin'), size, sha256: digest, result: 'ok' },
        { direction: 'down', path: remote('sftp.bin'), size, sha256: digest, result: 'ok' },
      ])
      const operations = fieldsOf(await framesOfSession(session), 'file')
      expect(operations).toContainEqual(
        expect.objectContaining({
          operation: 'rename',
          path: remote('sftp.bin'),
          target: remote('renamed.bin'),
          result: 'ok',
        }),
      )
      expect(operations).toContainEqual(
        expect.objectContaining({ operation: 'mkdir', path: remote('folder'), result: 'ok' }),
      )
      expect(operations).toContainEqual(
        expect.objectContaining({ operation: 'remove', path: remote('renamed.bin'), result: 'ok' }),
      )
      const events = (await bastion.events('file.transfer', 2)).filter((one) => one['session'] === session.id)
      expect(events).toMatchObject([
        { direction: 'up', path: remote('sftp.bin'), size, sha256: digest, result: 'success' },
        { direction: 'down', path: remote('sftp.bin'), size, sha256: digest, result: 'success' },
      ])
    })

    test.each([
      ['scp over SFTP', [], 'sftp'],
      ['scp -O', ['-O'], 'scp'],
    ])('%s', async (_, flags, kind) => {
      const place = remote(`${kind}-scp.bin`)
      const up = await recorded(() => scp(bastion.home, bastion.login(), file, { remote: place }, flags))
      const size = content.length
      const digest = sha256(content)
      expect(await transfersOf(up, kind)).toMatchObject([
        { direction: 'up', size, sha256: digest, result: 'ok' },
      ])
      const down = await recorded(() =>
        scp(bastion.home, bastion.login(), { remote: place }, `${file}.scp`, flags),
      )
      expect(await transfersOf(down, kind)).toMatchObject([
        { direction: 'down', size, sha256: digest, result: 'ok' },
      ])
      expect(readFileSync(`${file}.scp`).equals(content)).toBe(true)
    })

    test('rsync: the stream by size and hash', async () => {
      const session = await recorded(() =>
        rsync(bastion.home, bastion.login(), file, { remote: remote('rsync.bin') }),
      )
      const transfers = await transfersOf(session, 'rsync')
      expect(transfers.map(({ direction }) => direction).sort()).toEqual(['down', 'up'])
      const up = transfers.find(({ direction }) => direction === 'up')
      expect(up).toMatchObject({ operation: 'rsync', path: remote('rsync.bin'), result: 'ok' })
      expect(up?.['size']).toBe(session.bytes_in)
      expect(Number(up?.['size'])).toBeGreaterThan(content.length)
      expect(up?.['sha256']).toMatch(/^[0-9a-f]{64}$/)
      expect(readFileSync(remote('rsync.bin')).equals(content)).toBe(true)
    })

    test('git: push and clone by operation', async () => {
      await ssh(bastion.home, bastion.login(), [`git init -q --bare ${remote('repo.git')}`])
      await bastion.closedSessions()
      const work = join(bastion.home.folder, 'work')
      await git(bastion.home, bastion.login(), ['init', '-q', '-b', 'main', work])
      writeFileSync(join(work, 'file'), content)
      await git(bastion.home, bastion.login(), ['-C', work, 'add', 'file'])
      await git(bastion.home, bastion.login(), ['-C', work, 'commit', '-q', '-m', 'one'])
      const push = await recorded(async () => {
        const args = ['-C', work, 'push', '-q', `127.0.0.1:${remote('repo.git')}`, 'main']
        expect((await git(bastion.home, bastion.login(), args)).code).toBe(0)
      })
      expect(await transfersOf(push, 'git')).toContainEqual(
        expect.objectContaining({
          direction: 'up',
          path: remote('repo.git'),
          result: 'ok',
          size: push.bytes_in,
        }),
      )
    })
  })

  describe('a command', () => {
    test('is kept whole in both directions, standard error apart', async () => {
      const input = randomBytes(100_000)
      let output: Buffer = Buffer.alloc(0)
      const session = await recorded(async () => {
        const done = await ssh(bastion.home, bastion.login(), ['echo err >&2; cat; exit 3'], { input })
        output = done.bytes
        expect(done.code).toBe(3)
      })
      expect(output.equals(input)).toBe(true)
      const frames = await framesOfSession(session)
      expect(frames[0]?.data).toMatchObject({ kind: 'exec', command: 'echo err >&2; cat; exit 3' })
      expect(streamOf(frames, 'input').equals(input)).toBe(true)
      expect(streamOf(frames, 'output').equals(input)).toBe(true)
      expect(streamOf(frames, 'error_output').toString()).toBe('err\n')
      expect(fieldsOf(frames, 'exit')).toEqual([{ status: 3 }])
      expect(session).toMatchObject({ bytes_in: input.length, bytes_out: input.length + 4 })
    })

    test('beyond the quota goes by count and hash, with markers and events', {
      timeout: 300_000,
    }, async () => {
      const input = randomBytes(QUOTA + 2_000_003)
      let output: Buffer = Buffer.alloc(0)
      const session = await recorded(async () => {
        const done = await ssh(bastion.home, bastion.login(), ['cat'], { input, timeout: 300_000 })
        output = done.bytes
      })
      expect(output.equals(input)).toBe(true)
      const frames = await framesOfSession(session)
      const rest = input.subarray(QUOTA)
      const whole = { reason: 'quota', bytes: rest.length, sha256: sha256(rest) }
      for (const [stream, direction] of [
        ['input', 'in'],
        ['output', 'out'],
      ] as const) {
        expect(streamOf(frames, stream).equals(input.subarray(0, QUOTA))).toBe(true)
        const markers = fieldsOf(frames, 'unrecorded').filter((one) => one['direction'] === direction)
        expect(markers).toEqual([
          { direction, reason: 'quota' },
          { direction, ...whole },
        ])
      }
      const events = (await bastion.events('channel.unrecorded', 4)).filter(
        (one) => one['session'] === session.id,
      )
      expect(events).toHaveLength(4)
      for (const direction of ['in', 'out']) {
        const ofDirection = events.filter((one) => one['direction'] === direction)
        expect(ofDirection[1]).toMatchObject({ size: rest.length, sha256: sha256(rest), severity: 'warning' })
        expect(ofDirection[0]).not.toHaveProperty('size')
      }
    })
  })

  test('an authorization that says not recorded leaves no recording, but events', async () => {
    const authorizations = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
    const path = `/authorizations/${authorizations[0]!.id}`
    await bastion.broker.must('PUT', path, { is_recorded: false })
    const session = await recorded(() => ssh(bastion.home, bastion.login(), ['echo unseen']))
    expect(session).toMatchObject({ is_recorded: false, recording: null, result: 'success' })
    expect(await findRecording(recordingsFolder(), session.id)).toBeUndefined()
    expect((await bastion.broker.api('GET', `/sessions/${session.id}/recording`)).status).toBe(404)
    const events = await bastion.broker.must<{ event: string }[]>('GET', `/sessions/${session.id}/events`)
    expect(events.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['session.open', 'channel.open', 'command', 'session.close']),
    )
    expect(events.map(({ event }) => event)).not.toContain('recording.sealed')
    await bastion.broker.must('PUT', path, { is_recorded: true })
    const again = await recorded(() => ssh(bastion.home, bastion.login(), ['echo seen']))
    expect(again.recording?.state).toBe('sealed')
    expect(existsSync(recordingsFolder())).toBe(true)
  })
})
