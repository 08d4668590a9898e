/**
 * The bastion signs in at the target with the keys of the user's own agent, which each client forwards in its
 * own way.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { generateKey, type KeyType, type SshKey } from '../peers/keys.ts'
import { scp, ssh, sshTerminal } from '../peers/openssh.ts'
import { type Daemon, run, startDaemon } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { dbclient, plink } from '../peers/putty.ts'
import { pythonClient } from '../peers/python.ts'
import { ALL_RIGHTS, type Bastion, startBastion } from './bastion.ts'

let bastion: Bastion
let agent: Daemon
let socket: string
let keys: Record<KeyType, SshKey>
let authorization: string
let fingerprint: string

beforeAll(async () => {
  bastion = await startBastion()
  socket = join(bastion.home.folder, 'agent.sock')
  agent = await startDaemon(findProgram('ssh-agent'), ['-D', '-a', socket], () => existsSync(socket))
  const make = (type: KeyType) => generateKey(bastion.home.folder, { type })
  keys = { ed25519: await make('ed25519'), ecdsa: await make('ecdsa'), rsa: await make('rsa') }
  const [row] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
  authorization = `/authorizations/${row!.id}`
  const scan = await run(findProgram('ssh-keyscan'), [
    '-t',
    'ed25519',
    '-p',
    String(bastion.broker.ports.ssh),
    '127.0.0.1',
  ])
  const shown = await run(findProgram('ssh-keygen'), ['-l', '-f', '-'], { input: scan.stdout })
  fingerprint = /SHA256:\S+/.exec(shown.stdout)![0]
  await bastion.broker.must('POST', '/connectionpolicies', {
    policy_name: 'own-keys',
    protocol: 'SSH',
    authentication_methods: ['PUBKEY_AGENT_FORWARDING'],
  })
  await bastion.broker.must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'own-keys' })
  // The vault is empty: a sign-in succeeds only by a key of the agent.
  await bastion.broker.must('PUT', `/accounts/${bastion.account.name}@local@srv1`, { credentials: [] })
  // The target knows the users' keys, not those that sign in at the bastion.
  bastion.sshd.authorize(
    bastion.account.name,
    Object.values(keys).map(({ publicKey }) => publicKey),
  )
})
beforeEach(async () => {
  await methods('PUBKEY_AGENT_FORWARDING')
  await load()
})
afterAll(async () => {
  await agent?.stop()
  await bastion?.stop()
})

const add = (args: string[]) =>
  run(findProgram('ssh-add'), args, { env: { ...bastion.home.env(), SSH_AUTH_SOCK: socket } })

/** Leaves these keys in the agent. */
async function load(...types: KeyType[]): Promise<void> {
  await add(['-D'])
  for (const type of types) expect((await add([keys[type].path])).code).toBe(0)
}

const methods = (...authentication_methods: string[]) =>
  bastion.broker.must('PUT', '/connectionpolicies/own-keys', { authentication_methods })

const withAgent = (command: string, flags = ['-A']) =>
  ssh(bastion.home, bastion.login(), [command], { flags, env: { SSH_AUTH_SOCK: socket } })

describeWithPeers('an account without credential', ['ssh-agent', 'ssh-add'], () => {
  test.each(['ed25519', 'ecdsa', 'rsa'] as const)('is signed in to with a key of type %s', async (type) => {
    await load(type)
    const done = await withAgent('cat; exit 7')
    expect(done.stderr).toBe('')
    expect(done.code).toBe(7)
    expect(bastion.sshd.log()).toContain(keys[type].fingerprint)
  })

  test('input that comes early is not lost', async () => {
    await load('ed25519')
    const input = 'x'.repeat(300_000)
    const { stdout } = await ssh(bastion.home, bastion.login(), ['cat'], {
      flags: ['-A'],
      env: { SSH_AUTH_SOCK: socket },
      input,
    })
    expect(stdout === input).toBe(true)
  })

  test('a shell on a terminal, with its size', async () => {
    await load('ed25519')
    const terminal = sshTerminal(bastion.home, bastion.login(), [], {
      flags: ['-A', '-tt'],
      env: { SSH_AUTH_SOCK: socket },
      columns: 101,
      lines: 31,
    })
    terminal.send('stty size; exit 5\r')
    await terminal.expect('31 101')
    expect(await terminal.exit()).toBe(5)
  })

  test('a file by sftp', async () => {
    await load('ed25519')
    const done = await ssh(bastion.home, bastion.login(), ['sftp'], {
      flags: ['-A', '-s'],
      env: { SSH_AUTH_SOCK: socket },
      input: '',
    })
    expect(done.code).toBe(0)
  })

  test('with a listener, which the client asks for before its session', async () => {
    await load('ed25519')
    await bastion.broker.must('PUT', authorization, { subprotocols: [...ALL_RIGHTS, 'SSH_REVERSE_TCPIP'] })
    try {
      const flags = ['-A', '-R', '0:127.0.0.1:1']
      const done = await withAgent('exit 7', flags)
      expect(done.code).toBe(7)
      expect(done.stderr).toMatch(/Allocated port \d+|^$/)
    } finally {
      await bastion.broker.must('PUT', authorization, { subprotocols: ALL_RIGHTS })
    }
  })

  test('scp -A', async () => {
    await load('ed25519')
    const local = join(bastion.home.folder, 'copied')
    writeFileSync(local, 'copied by scp')
    const remote = join(bastion.account.home, 'copied')
    const done = await scp(bastion.home, bastion.login(), local, { remote }, ['-A'], {
      env: { SSH_AUTH_SOCK: socket },
    })
    expect(done.stderr).toBe('')
    expect(readFileSync(remote, 'utf8')).toBe('copied by scp')
  })

  test('plink -A', async () => {
    await load('ed25519')
    const login = bastion.login({ hostFingerprint: fingerprint })
    const done = await plink(bastion.home, login, 'exit 7', { flags: ['-A'], env: { SSH_AUTH_SOCK: socket } })
    expect(done.code).toBe(7)
  })

  test('dbclient -A', async () => {
    await load('ed25519')
    const done = await dbclient(bastion.home, bastion.login(), 'exit 7', {
      flags: ['-A'],
      env: { SSH_AUTH_SOCK: socket },
    })
    expect(done.code).toBe(7)
  })

  test.each(['paramiko', 'asyncssh'] as const)('%s asks for its forwarding', async (library) => {
    await load('rsa')
    const [done] = await pythonClient(library, bastion.home, bastion.login(), [{ exec: 'exit 7' }], socket)
    expect(done).toMatchObject({ code: 7, stderr: '' })
  })

  test('from the menu', async () => {
    await load('ed25519')
    const terminal = sshTerminal(bastion.home, bastion.login({ user: 'ops1' }), [], {
      flags: ['-A', '-tt'],
      env: { SSH_AUTH_SOCK: socket },
    })
    await terminal.expect('srv1')
    terminal.send('1\r')
    await terminal.expect(/\$ |# |> /)
    terminal.send('exit 5\r')
    expect(await terminal.exit()).toBe(5)
  })

  test('the agent goes no further than the bastion without its right', async () => {
    await load('ed25519')
    const before = (await bastion.events('channel.denied')).length
    expect((await withAgent('echo "at $SSH_AUTH_SOCK"')).stdout).toBe('at \n')
    await bastion.broker.must('PUT', authorization, { subprotocols: [...ALL_RIGHTS, 'SSH_AUTH_AGENT'] })
    try {
      expect((await withAgent('ssh-add -l')).stdout).toContain(keys.ed25519.fingerprint)
    } finally {
      await bastion.broker.must('PUT', authorization, { subprotocols: ALL_RIGHTS })
    }
    expect((await bastion.events('channel.denied')).length).toBe(before)
  })
})

describe('who is not signed in reads why', () => {
  const told = async (command: Promise<{ code: number | null; stderr: string }>) => {
    const { code, stderr } = await command
    expect(code).toBe(255)
    return stderr
  }

  test('no agent is forwarded', async () => {
    await load('ed25519')
    expect(await told(withAgent('true', []))).toContain('ssh -A')
  })

  test('the agent has no key', async () => {
    expect(await told(withAgent('true'))).toContain('ssh-add')
  })

  test('the target knows none of its keys', async () => {
    const other = await generateKey(bastion.home.folder, { type: 'ed25519' })
    await add([other.path])
    expect(await told(withAgent('true'))).toContain('none of the 1 keys of your agent was accepted')
  })

  test('the account has a password, which the policy does not use', async () => {
    const path = `/accounts/${bastion.account.name}@local@srv1`
    const credentials = [{ type: 'password', password: bastion.account.password }]
    await bastion.broker.must('PUT', path, { credentials })
    try {
      expect(await told(withAgent('true', []))).toContain('ssh -A')
      await methods('PUBKEY_VAULT')
      expect(await told(withAgent('true', []))).toContain('which its connection policy names')
      await methods('PUBKEY_AGENT_FORWARDING', 'PASSWORD_VAULT')
      expect((await withAgent('exit 7', [])).code).toBe(7)
    } finally {
      await bastion.broker.must('PUT', path, { credentials: [] })
    }
  })
})
