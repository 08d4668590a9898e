/** OpenSSH's server as a target: its own host keys, users, and port on 127.0.0.1. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { generateKey, type KeyType, type SshKey } from './keys.ts'
import { type Daemon, freePort, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

const BIND_ATTEMPTS = 5

export interface SshdUser {
  /** A user of this system: `createSystemUser().name`, `root`, or the user who runs the tests. */
  name: string
  /** Lines of an authorized_keys file. */
  authorizedKeys?: string[]
}

export interface SshdOptions {
  users?: SshdUser[]
  /** Types of the host keys to generate, or existing keys (to restart with the same); default ed25519. */
  hostKeys?: (KeyType | SshKey)[]
  /** Default true. Passwords need PAM, so root. */
  passwordAuthentication?: boolean
  /** Default true, as above. */
  keyboardInteractive?: boolean
  /** Default true. */
  publicKey?: boolean
  /** Whether there is SFTP; default true. */
  sftp?: boolean
  /** Lines for sshd_config; they come first, so they override the ones from here. */
  extraConfig?: string[]
  /** Default: a free one. */
  port?: number
  /** More environment, as the keytab for tickets. */
  env?: NodeJS.ProcessEnv
}

export interface Sshd {
  host: '127.0.0.1'
  port: number
  hostKeys: SshKey[]
  pid: number
  /** Returns sshd's own log (LogLevel VERBOSE). */
  log(): string
  /** Replaces the user's authorized keys. */
  authorize(user: string, keys: readonly string[]): void
  stop(): Promise<void>
}

/** Starts `sshd -D -e`. `stop` ends it with its sessions and removes its folder. */
export async function startSshd(options: SshdOptions = {}): Promise<Sshd> {
  const program = findProgram('sshd')
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-sshd-'))
  // sshd reads the authorized keys as the user who logs in.
  chmodSync(folder, 0o755)
  const root = process.getuid?.() === 0
  // Debian's sshd chroots its unprivileged process there; the package's service creates the folder, and no
  // service runs.
  if (root) mkdirSync('/run/sshd', { recursive: true, mode: 0o755 })
  try {
    const hostKeys: SshKey[] = []
    for (const key of options.hostKeys ?? (['ed25519'] as const)) {
      hostKeys.push(typeof key === 'string' ? await generateKey(folder, { type: key }) : keep(folder, key))
    }
    const keyFolder = join(folder, 'keys')
    mkdirSync(keyFolder, { mode: 0o755 })
    const authorize = (user: string, keys: readonly string[]) =>
      writeFileSync(join(keyFolder, user), `${keys.join('\n')}\n`, { mode: 0o644 })
    for (const user of options.users ?? []) authorize(user.name, user.authorizedKeys ?? [])
    const [daemon, port] = await listen(program, folder, hostKeys, options, root)
    return {
      host: '127.0.0.1',
      port,
      hostKeys,
      pid: daemon.pid,
      log: daemon.log,
      authorize,
      stop: async () => {
        await daemon.stop()
        rmSync(folder, { recursive: true, force: true })
      },
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

/** Copies an existing key: its first folder may be gone. */
function keep(folder: string, key: SshKey): SshKey {
  const path = join(folder, `host_${key.fingerprint.slice(7, 15).replaceAll(/[^A-Za-z0-9]/g, '_')}`)
  writeFileSync(path, key.privateKey, { mode: 0o600 })
  writeFileSync(`${path}.pub`, `${key.publicKey}\n`)
  return { ...key, path }
}

/** If another process binds the chosen port before sshd, tries another, unless the caller named it. */
async function listen(
  program: string,
  folder: string,
  hostKeys: SshKey[],
  options: SshdOptions,
  root: boolean,
): Promise<[Daemon, number]> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort())
    const config = join(folder, 'sshd_config')
    writeFileSync(config, configuration(port, folder, hostKeys, options, root))
    try {
      const env = { ...process.env, ...options.env }
      return [await startDaemon(program, ['-D', '-e', '-f', config], /Server listening on/, { env }), port]
    } catch (error) {
      if (options.port !== undefined || attempt === BIND_ATTEMPTS) throw error
      if (!String(error).includes('Address already in use')) throw error
    }
  }
}

function configuration(
  port: number,
  folder: string,
  hostKeys: SshKey[],
  options: SshdOptions,
  root: boolean,
): string {
  const yes = (value: boolean | undefined): string => (value === false ? 'no' : 'yes')
  const users = options.users?.map((user) => user.name) ?? [userInfo().username]
  return `${[
    ...(options.extraConfig ?? []),
    `ListenAddress 127.0.0.1:${port}`,
    ...hostKeys.map((key) => `HostKey ${key.path}`),
    `AuthorizedKeysFile ${folder}/keys/%u`,
    `AllowUsers ${users.join(' ')}`,
    `PasswordAuthentication ${root ? yes(options.passwordAuthentication) : 'no'}`,
    `KbdInteractiveAuthentication ${root ? yes(options.keyboardInteractive) : 'no'}`,
    `PubkeyAuthentication ${yes(options.publicKey)}`,
    `UsePAM ${root ? 'yes' : 'no'}`,
    'PermitRootLogin yes',
    'StrictModes no',
    'PidFile none',
    'LogLevel VERBOSE',
    'UseDNS no',
    'PrintMotd no',
    'PrintLastLog no',
    'LoginGraceTime 30',
    'MaxStartups 500',
    'MaxSessions 500',
    'AcceptEnv LANG LC_* GIT_PROTOCOL',
    'X11Forwarding yes',
    ...(options.sftp === false ? [] : ['Subsystem sftp /usr/lib/openssh/sftp-server']),
  ].join('\n')}\n`
}
