/** CredSSP by MIT's SPNEGO with gss-ntlmssp, which is as strict as Windows: a client, and a server. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { run } from '../process.ts'
import { findProgram } from '../program.ts'

export const GSSAPI_PEERS = ['python3', 'python3-gssapi', 'gss-ntlmssp'] as const

const SCRIPT = join(import.meta.dirname, 'credssp_peer.py')
/** Milliseconds for which a server of one client waits. */
const SERVER_MS = 20_000

export interface GssapiLogin {
  user: string
  domain: string
  password: string
}

/** `status`: the NTSTATUS of a refusal. `altered`: the server did not prove the key of its TLS. */
export type GssapiResult = { result: 'in' | 'altered' } | { result: 'refused'; status: number }

/** Signs in at a loopback server, bound to its certificate, or to another one if `another` is set. */
export async function gssapiClient(port: number, login: GssapiLogin, another = false): Promise<GssapiResult> {
  const done = await run(findProgram('python3'), [SCRIPT, 'client'], {
    input: JSON.stringify({ port, ...login, another }),
  })
  if (done.code !== 0) throw new Error(`credssp_peer.py: ${done.stderr}`)
  return JSON.parse(done.stdout) as GssapiResult
}

export interface GssapiServer {
  port: number
  /** Resolves to the first client's credentials; rejects if there are none. */
  received: Promise<GssapiLogin>
}

/** Starts a server for one client and one login; it checks the client's channel binding. */
export async function startGssapiServer(identity: Identity, login: GssapiLogin): Promise<GssapiServer> {
  const users = `${login.domain}:${login.user}:${login.password}\n`
  const { port, next, child } = await start('server', identity, (file) => ({
    env: { PATH: process.env.PATH, NTLM_USER_FILE: file('users', users) },
  }))
  const received = next() as Promise<GssapiLogin>
  received.catch(() => {})
  setTimeout(() => child.kill(), SERVER_MS).unref()
  return { port, received }
}

/**
 * Credentials that a target by Kerberos has received, the client's principal, and in hex the keys of the context and encrypted
 * bytes of the ticket's token; or the error.
 */
export type Delegated =
  | (GssapiLogin & { principal: string; keys: string[]; ticket: string })
  | { error: string }

export interface KerberosTarget {
  port: number
  /** Resolves to the next client's credentials. */
  next(): Promise<Delegated>
  stop(): void
}

export interface KerberosTargetOptions {
  /** Environment of the realm. */
  env: NodeJS.ProcessEnv
  /** File with the keys of the target's service. */
  keytab: string
  /** Port of a server with TLS that has the desktops. */
  onward?: number
}

/** Starts a target that takes Kerberos tickets alone. */
export async function startKerberosTarget(
  identity: Identity,
  { env, keytab, onward }: KerberosTargetOptions,
): Promise<KerberosTarget> {
  const { port, next, child } = await start('target', identity, () => ({
    env: { ...env, KRB5_KTNAME: keytab, KRB5RCACHETYPE: 'none' },
    onward: onward ?? null,
  }))
  return { port, next: next as () => Promise<Delegated>, stop: () => child.kill() }
}

type Identity = { cert: string; key: string }

async function start(
  mode: 'server' | 'target',
  identity: Identity,
  more: (file: (name: string, text: string) => string) => { env: NodeJS.ProcessEnv; onward?: number | null },
): Promise<{ port: number; next: () => Promise<unknown>; child: ChildProcess }> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-gssapi-'))
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const { env, ...input } = more(file)
  const child = spawn(findProgram('python3'), [SCRIPT, mode], { env })
  const files = { cert: file('cert', identity.cert), key: file('key', identity.key) }
  child.stdin.end(JSON.stringify({ ...files, ...input }))
  let errors = ''
  child.stderr.on('data', (data: Buffer) => {
    errors += data
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  child.on('close', () => rmSync(folder, { recursive: true, force: true }))
  const next = async (): Promise<unknown> => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`credssp_peer.py: ${errors}`)
    return JSON.parse(value)
  }
  return { port: (await next()) as number, next, child }
}
