/**
 * `sallyport demo`: a throw-away broker on high loopback ports, with a user and a real target on this
 * machine, and the one line to paste. Everything is in one temporary folder and is removed at Ctrl-C.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { AuditLog } from '../audit/log.ts'
import { type Broker, startBroker } from '../broker/broker.ts'
import { firstAdministrator } from '../broker/first-start.ts'
import { openFoundation } from '../broker/foundation.ts'
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { openLog } from '../host/log.ts'
import { newSshKey } from '../host/ssh-keys.ts'
import { Secret } from '../model/secret.ts'
import { type Command, expectNoWords } from './command.ts'
import { productVersion } from './version.ts'

const USER = 'ops1'
const PASSWORD = 'through-the-doors'
const DEVICE = 'srv1'
/** Places to find an sshd for a private target; the machine's own on port 22 is no substitute. */
const SSHD = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/opt/homebrew/sbin/sshd', '/usr/local/bin/sshd']

export const demo: Command = {
  synopsis: [['demo', 'a throw-away broker with a user and a target, and the line to paste']],
  async run({ words }) {
    expectNoWords('demo', words)
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-demo-'))
    let target: Target | undefined
    let broker: Broker | undefined
    try {
      target = await startTarget(folder)
      const sshPort = await freePort()
      const file = writeConfig(folder, sshPort, await freePort())
      const config = loadConfig(file)
      await provision(config, target)
      broker = await startBroker({
        config,
        logger: openLog(config.log, () => undefined).logger,
        version: productVersion(),
        say: () => undefined,
      })
      process.stdout.write(instructions(file, sshPort, target, config))
      await new Promise<void>((resolve) => {
        // npm forwards a Ctrl-C that the terminal has already sent: the second one changes nothing.
        for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve())
      })
      process.stdout.write('\nthe demo ends\n')
      await broker.stop('the demo ends')
      return 0
    } finally {
      target?.process.kill()
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

function instructions(file: string, port: number, target: Target, { listen }: Config): string {
  const options = '-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR'
  const host = `-p ${port} ${options} ${USER}+${target.account}@${DEVICE}@127.0.0.1`
  const https = listen.https ? `https://127.0.0.1:${listen.https.port}` : ''
  return `
A broker, a user (${USER}, password ${PASSWORD}) and a target (${DEVICE}, this machine as ${target.account}) are ready.
In another terminal:

  ssh ${host}

The password is: ${PASSWORD}   Without a target in the login, ssh -t ... ${USER}@127.0.0.1 shows a menu.
Afterwards, replay what happened:

  npm run sallyport -- recordings list --config ${file}
  npm run sallyport -- recordings play SESSION --config ${file}

The API: ${https}/api/doc/Usage.html (user admin, password ${PASSWORD}).  Ctrl-C ends the demo and removes ${join(file, '..')}.
`
}

interface Target {
  process: ChildProcess
  port: number
  account: string
  privateKey: string
}

/** Starts a private sshd on a loopback port, which accepts one key for the user who runs the demo. */
async function startTarget(folder: string): Promise<Target> {
  const program = SSHD.find((path) => existsSync(path))
  if (program === undefined) {
    throw new Error(
      'the demo needs an SSH server to connect to, and found none: install one (Debian: apt-get install openssh-server; ' +
        'it need not run)',
    )
  }
  const account = userInfo().username
  const home = join(folder, 'target')
  mkdirSync(home, { mode: 0o755 })
  // sshd reads the authorized keys as the user who signs in, and rejects folders that others may write to.
  chmodSync(folder, 0o755)
  const hostKey = newSshKey('ed25519')
  const userKey = newSshKey('ed25519')
  writeFileSync(join(home, 'host_key'), hostKey.private, { mode: 0o600 })
  writeFileSync(join(home, 'authorized_keys'), `${userKey.public}\n`, { mode: 0o644 })
  const port = await freePort()
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${join(home, 'host_key')}`,
    `AuthorizedKeysFile ${join(home, 'authorized_keys')}`,
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    'PermitRootLogin prohibit-password',
    'PasswordAuthentication no',
    'Subsystem sftp internal-sftp',
  ]
  writeFileSync(join(home, 'sshd_config'), `${settings.join('\n')}\n`)
  // Debian's sshd needs this folder, which its service creates.
  if (process.getuid?.() === 0) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  execFileSync(program, ['-t', '-f', join(home, 'sshd_config')], { stdio: ['ignore', 'ignore', 'pipe'] })
  const child = spawn(program, ['-D', '-f', join(home, 'sshd_config')], { stdio: 'ignore' })
  return { process: child, port, account, privateKey: userKey.private }
}

function writeConfig(folder: string, sshPort: number, httpsPort: number): string {
  const file = join(folder, 'sallyport.yaml')
  const lines = [
    `data_dir: ${join(folder, 'data')}`,
    'listen:',
    `  https: { host: 127.0.0.1, port: ${httpsPort} }`,
    `  ssh: { host: 127.0.0.1, port: ${sshPort} }`,
    '  telnet: off',
    '  rlogin: off',
    '  vnc: off',
    '  rdp: off',
    '  metrics: off',
    'recordings: { min_free: 64MiB }',
    `log: { level: warn, file: ${join(folder, 'sallyport.log')} }`,
    'shutdown_grace: 1s',
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  return file
}

/**
 * Creates in the new database the objects that an administrator would create over the API (README.md, the
 * walk).
 */
async function provision(config: Config, target: Target): Promise<void> {
  const { store, vault, identities, passwords, close } = await openFoundation(config)
  try {
    const audit = new AuditLog({ repository: store.audit, now: Date.now })
    await firstAdministrator(store, identities, audit, passwords.policy, PASSWORD)
    const group = await store.userGroups.create({ groupName: 'operators', description: '', userIds: [] })
    const user = await store.users.create({
      userName: USER,
      displayName: 'Demo operator',
      email: '',
      profile: 'user',
      userAuths: ['local_password'],
      sshPublicKeys: [],
      isDisabled: false,
      ipSource: [],
      groupIds: [group.id],
    })
    await identities.setPassword(user.id, Secret.of(PASSWORD))
    const device = await store.devices.create({
      deviceName: DEVICE,
      host: '127.0.0.1',
      description: 'this machine',
    })
    const service = await store.services.create({
      deviceId: device.id,
      serviceName: 'ssh',
      protocol: 'SSH',
      port: target.port,
      subprotocols: [],
      hostKeyPolicy: 'first_sight',
    })
    const domain = await store.domains.create({ domainName: 'local', description: '', deviceId: device.id })
    const account = await store.accounts.create({
      accountName: target.account,
      accountLogin: target.account,
      domainId: domain.id,
      description: '',
      credentialTypes: [],
    })
    await vault.setCredentials(account.id, [{ type: 'ssh_key', privateKey: Secret.of(target.privateKey) }])
    const targets = await store.targetGroups.create({
      groupName: 'servers',
      description: '',
      sessionAccounts: [{ accountId: account.id, serviceId: service.id }],
      interactiveServiceIds: [],
      mappingServiceIds: [],
      passwordRetrievalAccountIds: [],
    })
    await store.authorizations.create({
      userGroupId: group.id,
      targetGroupId: targets.id,
      description: '',
      authorizeSessions: true,
      authorizePasswordRetrieval: false,
      subprotocols: ['SSH_SHELL', 'SSH_REMOTE_COMMAND', 'SSH_SCP_UP', 'SSH_SCP_DOWN', 'SFTP_SESSION'],
      isRecorded: true,
      recordingMode: 'standard',
    })
  } finally {
    await close()
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen({ host: '127.0.0.1', port: 0 }, () => {
      const address = server.address()
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port)
        else reject(new Error('no free port was found'))
      })
    })
  })
}
