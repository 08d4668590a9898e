/**
 * Attack case 52: secrets are planted in every input, in correct and in wrong places; afterwards none of them
 * exists anywhere unsealed.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ExportedFrame, streamOf } from '../e2e/recorded.ts'
import { descendants, run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { until } from '../until.ts'
import { Canaries } from './canaries.ts'
import { type Planted, startPlanted } from './planting.ts'

const PEERS = ['sshd', 'ssh', 'ssh-keygen', 'plink', 'rsyslogd', 'snmptrapd', 'ffmpeg', 'gcore'] as const
const LONG = 120_000
/** The input of programs is recorded, sealed, up to the quota. */
const SENT = 'the content of a file'

describeWithPeers('a secret', PEERS, () => {
  let planted: Planted
  beforeAll(async () => {
    planted = await startPlanted()
  }, LONG)
  afterAll(() => planted?.stop())

  test('would be found in every form that is looked for', () => {
    const canaries = new Canaries()
    const secret = canaries.awkward('one')
    const bytes = Buffer.from(secret)
    for (const form of [
      secret,
      JSON.stringify({ secret }),
      encodeURIComponent(secret),
      ...[0, 1, 2].map((skip) => Buffer.concat([Buffer.alloc(skip), bytes]).toString('base64')),
      Buffer.concat([bytes, bytes]).toString('base64url'),
      bytes.toString('hex').toUpperCase(),
      JSON.stringify(bytes),
      JSON.stringify(new Uint8Array(bytes)),
      Buffer.from(secret, 'utf16le'),
    ])
      expect(canaries.in(form), String(form)).toEqual(['one'])
    expect(canaries.in(randomLooking())).toEqual([])
  })

  test('is not in the log at its lowest level, nor at the receivers of events', async () => {
    const { canaries, bastion, rsyslog, trapd } = planted
    expect(bastion.broker.log()).toContain('"event":"auth.failure"')
    expect(canaries.in(bastion.broker.log())).toEqual([])
    const messages = await until('the events', () => {
      const all = rsyslog.messages()
      return all.some(({ msgid }) => msgid === 'session.close') ? JSON.stringify(all) : undefined
    })
    expect(canaries.in(messages)).toEqual([])
    expect(trapd.notifications().length).toBeGreaterThan(0)
    expect(canaries.in(trapd.raw())).toEqual([])
  })

  test('is not in what the API answers, refuses or exports, nor in the metrics', {
    timeout: LONG,
  }, async () => {
    const { canaries, bastion, ask, answers } = planted
    for (const path of ROUTES) expect(await ask('GET', `${path}?limit=-1`), path).toBe(200)
    for (const type of ['users', 'accounts', 'domains', 'externalauths'])
      expect(await ask('GET', `/export/${type}`), type).toBe(200)
    for (const { id } of planted.sessions) expect(await ask('GET', `/sessions/${id}/events`)).toBe(200)
    expect(answers()).toContain('"malformed_body"')
    expect(canaries.in(answers())).toEqual([])
    const metrics = await fetch(`http://127.0.0.1:${bastion.broker.ports.metrics}/metrics`)
    expect(canaries.in(await metrics.text())).toEqual([])
  })

  test('is not in recordings, in any form that they are exported in', { timeout: LONG }, async () => {
    const { canaries, bastion, command, sessions } = planted
    let sent = false
    for (const { id, subprotocols } of sessions) {
      const of = async (form: string) =>
        String(await bastion.broker.must('GET', `/sessions/${id}/recording${form}`))
      const json = await of('.json')
      expect(canaries.in(json, [SENT])).toEqual([])
      const frames = json
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as ExportedFrame)
      for (const type of ['output', 'error_output', 'input']) {
        const found = canaries.in(streamOf(frames, type))
        sent ||= type === 'input' && found.includes(SENT)
        expect(found.filter((name) => name !== SENT || type !== 'input')).toEqual([])
      }
      const isTerminal = subprotocols.includes('SSH_SHELL')
      for (const form of ['', ...(isTerminal ? ['.txt', '.cast', '.cast3', '.html', '.ttyrec'] : [])])
        expect(canaries.in(await of(form), [SENT]), form).toEqual([])
    }
    expect(sent).toBe(true)
    for (const words of [['list'], ['verify'], ['search', 'secret']]) {
      const done = await command(['recordings', ...words])
      expect(done.stdout).not.toBe('')
      expect(canaries.in(done.stdout + done.stderr)).toEqual([])
    }
  })

  test('is not in what the command line says', { timeout: LONG }, async () => {
    const { canaries, command } = planted
    for (const words of [
      ...[['check'], ['audit', 'export'], ['audit', 'verify'], ['export', 'accounts']],
      ['export', 'externalauths'],
    ]) {
      const done = await command(words)
      expect(done.stdout, words.join(' ')).not.toBe('')
      expect(canaries.in(done.stdout + done.stderr), words.join(' ')).toEqual([])
    }
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-faulty-'))
    try {
      const report = join(folder, 'report.json')
      const written = await command(['doctor', '--output', report])
      expect(written.stdout, written.stderr).toContain(report)
      expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({ store: { users: expect.any(Number) } })
      expect(canaries.in(readFileSync(report))).toEqual([])
      expect(canaries.in(written.stdout + written.stderr)).toEqual([])
      const secret = canaries.plain('a secret in a configuration that is refused')
      const configFile = join(folder, 'faulty.yaml')
      for (const text of [
        `snmp: { traps: [{ host: x, version: 2, community: ${secret} }] }`,
        `snmp: { traps: [{ host: x, version: 3, inform: true, user: x, auth_password: [${secret}] }] }`,
        `recordings: { object_store: { secret_key: { value: ${secret} } } }`,
        `master_key: ${secret}`,
        `database: { url: 'sqlite:x?password=${secret}', password: ${secret} }`,
        `master_key: "${secret}`,
        `traces: { endpoint: 'https://monitor:${secret}@collector.example.com/v1/traces' }`,
        `recordings: { object_store: { endpoint: 'https://u:${secret}@s3.example.com' } }`,
      ]) {
        writeFileSync(configFile, `data_dir: ${folder}\n${text}\n`)
        const done = await command(['serve'], configFile)
        expect(done.code).not.toBe(0)
        expect(done.stderr).not.toBe('')
        expect(canaries.in(done.stdout + done.stderr), text).toEqual([])
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('is not on a command line of the broker’s, nor in the environment of what it starts', {
    timeout: LONG,
  }, async () => {
    const { canaries, bastion, environment, ask, sessions } = planted
    const terminal = sessions.find(({ subprotocols }) => subprotocols.includes('SSH_SHELL'))!
    expect(await ask('GET', `/sessions/${terminal.id}/recording.webm`)).toBe(200)
    expect(readFileSync(environment, 'utf8')).toContain('PATH=')
    expect(canaries.in(readFileSync(environment))).toEqual([])
    for (const pid of [bastion.broker.pid, ...descendants(bastion.broker.pid)])
      expect(canaries.in(readFileSync(`/proc/${pid}/cmdline`))).toEqual([])
  })

  test('is in the memory of the broker, and in no core dump of it', { timeout: LONG }, async () => {
    const { canaries, bastion } = planted
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-core-'))
    const { pid } = bastion.broker
    try {
      expect(canaries.in(await stackOf(pid))).toContain('the password of admin, from the environment')
      const done = await run(findProgram('gcore'), ['-o', join(folder, 'core'), String(pid)], {
        timeout: LONG,
      })
      expect(done.code, done.stderr).toBe(0)
      const dump = readFileSync(join(folder, `core.${pid}`))
      expect(dump.subarray(0, 4).toString('latin1')).toBe('\x7fELF')
      expect(canaries.in(dump)).toEqual([])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('does not come by a debugger on a port: the signal that opens Node’s is ignored', async () => {
    const { bastion } = planted
    process.kill(bastion.broker.pid, 'SIGUSR1')
    await until('the answer', () => bastion.broker.log().includes('SIGUSR1 is ignored') || undefined)
    expect(bastion.broker.log()).not.toContain('Debugger listening')
  })

  test('is in no file of the data folder and in no temporary one', () => {
    const { canaries, bastion, temporary } = planted
    expect(canaries.names.length).toBeGreaterThanOrEqual(28)
    expect(canaries.below(bastion.broker.dataFolder)).toEqual([])
    expect(canaries.below(temporary)).toEqual([])
  })
})

const ROUTES = [
  ...['/users', '/usergroups', '/devices', '/domains', '/accounts', '/targetgroups', '/authorizations'],
  ...['/apikeys', '/profiles', '/checkoutpolicies', '/connectionpolicies', '/hostkeys', '/sessions'],
  ...['/externalauths', '/authdomains'],
]

function randomLooking(): Buffer {
  return Buffer.from('no secret '.repeat(1000))
}

/** Returns the bytes of a process's stack, which begins with its environment. */
async function stackOf(pid: number): Promise<Buffer> {
  const line = readFileSync(`/proc/${pid}/maps`, 'utf8')
    .split('\n')
    .find((line) => line.endsWith('[stack]'))!
  const [from = 0, to = 0] = line
    .split(' ')[0]!
    .split('-')
    .map((hex) => Number.parseInt(hex, 16))
  const memory = await open(`/proc/${pid}/mem`)
  try {
    const { buffer } = await memory.read(Buffer.alloc(to - from), 0, to - from, from)
    return buffer
  } finally {
    await memory.close()
  }
}
