/**
 * A home folder for client programs, so that they never use the ~/.ssh of the user who runs the tests, and
 * their logins.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The address and the credentials of a login. */
export interface Login {
  port: number
  /** The user name that the client sends: a system user's, or a login string `ops1+root@srv1`. */
  user: string
  password?: string
  /** A private key's file, as of `generateKey().path`. */
  identity?: string
  /** Fingerprint of the server's key; PuTTY's programs refuse an unknown server. */
  hostFingerprint?: string
  /** The method (OpenSSH's client); default: the server's preference of those for the password. */
  method?: 'password' | 'keyboard-interactive' | 'gssapi-with-mic'
  /** More `-o` options for OpenSSH's client, as `Compression=yes`. */
  options?: string[]
}

export interface Home {
  folder: string
  knownHosts: string
  /**
   * OpenSSH's configuration: OpenSSH finds ~ in the password file, not in HOME, so all paths are absolute.
   */
  sshConfig: string
  /** Returns the environment of a client; with a password, ssh gets it by its askpass program. */
  env(password?: string): NodeJS.ProcessEnv
  /** Writes a line of known_hosts for 127.0.0.1; from then on another key is refused. */
  trust(port: number, publicKey: string): void
  remove(): void
}

/** Makes an empty home folder. A server's key is accepted when first seen, and a changed one is refused. */
export function createHome(): Home {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-home-'))
  mkdirSync(join(folder, '.ssh'), { mode: 0o700 })
  const knownHosts = join(folder, '.ssh', 'known_hosts')
  const sshConfig = join(folder, '.ssh', 'config')
  const askpass = join(folder, 'askpass')
  writeFileSync(askpass, '#!/bin/sh\nprintf "%s\\n" "$PEER_PASSWORD"\n', { mode: 0o700 })
  writeFileSync(
    sshConfig,
    [
      `UserKnownHostsFile ${knownHosts}`,
      'GlobalKnownHostsFile /dev/null',
      'StrictHostKeyChecking accept-new',
      'UpdateHostKeys no',
      'IdentitiesOnly yes',
      'NumberOfPasswordPrompts 1',
      'ConnectTimeout 10',
      'LogLevel ERROR',
      '',
    ].join('\n'),
  )
  return {
    folder,
    knownHosts,
    sshConfig,
    env: (password) => {
      const env: NodeJS.ProcessEnv = {
        PATH: process.env.PATH,
        HOME: folder,
        LANG: 'C.UTF-8',
        TERM: 'xterm-256color',
      }
      if (password === undefined) return env
      return { ...env, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force', PEER_PASSWORD: password }
    },
    trust: (port, publicKey) => {
      let before = ''
      try {
        before = readFileSync(knownHosts, 'utf8')
      } catch {
        // The first line of the file.
      }
      const [type, key] = publicKey.split(' ')
      writeFileSync(knownHosts, `${before}[127.0.0.1]:${port} ${type} ${key}\n`)
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Writes a file of the home folder for a client to read; returns its path. */
export function writeHomeFile(home: Home, name: string, text: string): string {
  const path = join(home.folder, name)
  writeFileSync(path, text, { mode: 0o600 })
  return path
}
