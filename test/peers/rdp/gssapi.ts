/** CredSSP by MIT's SPNEGO with gss-ntlmssp, which is as strict as Windows: a client, and a server. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { run } from '../process.ts'
import { findProgram } from '../program.ts'

export const GSSAPI_PEERS = ['python3', 'python3-gssapi', 'gss-ntlmssp'] as const

const SCRIPT = join(import.meta.dirname, 'credssp_peer.py')

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
export async function startGssapiServer(
  identity: { cert: string; key: string },
  login: GssapiLogin,
): Promise<GssapiServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-gssapi-'))
  const file = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const users = file('users', `${login.domain}:${login.user}:${login.password}\n`)
  const child = spawn(findProgram('python3'), [SCRIPT, 'server'], {
    env: { PATH: process.env.PATH, NTLM_USER_FILE: users },
    timeout: 20_000,
  })
  child.stdin.end(JSON.stringify({ cert: file('cert', identity.cert), key: file('key', identity.key) }))
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
  const port = (await next()) as number
  const received = next() as Promise<GssapiLogin>
  received.catch(() => {})
  return { port, received }
}
