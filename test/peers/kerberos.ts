/** MIT's KDC, for a realm of its own on loopback. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isListening, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

export const REALM = 'LAB.TEST'

export interface MitKdc {
  port: number
  /** Environment of programs that use this realm; tickets are kept in its folder. */
  env: NodeJS.ProcessEnv
  /** Runs a command of kadmin.local. */
  admin(command: string): Promise<string>
  /** Path of a file in the KDC's folder, which is removed with it. */
  file(name: string): string
  /** Exports the keys of a principal anew, as base64 of a keytab. */
  keytab(principal: string): Promise<string>
  /** Gets a first ticket, for the programs in `env`. */
  ticketOf(principal: string, password: string): Promise<void>
  stop(): Promise<void>
}

/** Starts a KDC that answers by TCP and, unless `isTcpOnly`, by UDP. */
export async function startKdc(isTcpOnly = false): Promise<MitKdc> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-kdc-'))
  const port = await freePort()
  const address = `127.0.0.1:${port}`
  const [client, server] = [join(folder, 'krb5.conf'), join(folder, 'kdc.conf')]
  writeFileSync(
    client,
    `[libdefaults]
default_realm = ${REALM}
dns_canonicalize_hostname = false
dns_lookup_kdc = false
rdns = false
[realms]
${REALM} = {
  kdc = ${address}
}
`,
  )
  writeFileSync(
    server,
    `[kdcdefaults]
kdc_listen = ${isTcpOnly ? '""' : address}
kdc_tcp_listen = ${address}
[realms]
${REALM} = {
  database_name = ${folder}/principal
  key_stash_file = ${folder}/stash
  acl_file = ${folder}/acl
  supported_enctypes = aes256-cts:normal aes128-cts:normal aes256-sha2:normal aes128-sha2:normal
}
`,
  )
  const env = {
    ...process.env,
    KRB5_CONFIG: client,
    KRB5_KDC_PROFILE: server,
    KRB5CCNAME: join(folder, 'tickets'),
  }
  const done = async (program: 'kdb5_util' | 'kadmin.local', args: string[]) => {
    const { code, stdout, stderr } = await run(findProgram(program), args, { env })
    if (code !== 0 || /while /.test(stderr)) throw new Error(`${program}: ${stderr}`)
    return stdout
  }
  const admin = (command: string) => done('kadmin.local', ['-q', command])
  await done('kdb5_util', ['-P', 'Master-Pass1', 'create', '-s'])
  const daemon = await startDaemon(
    findProgram('krb5kdc'),
    ['-n', '-P', join(folder, 'pid')],
    () => isListening(port),
    { env },
  )
  return {
    port,
    env,
    admin,
    file: (name) => join(folder, name),
    keytab: async (principal) => {
      const file = join(folder, 'keytab')
      rmSync(file, { force: true })
      await admin(`ktadd -k ${file} ${principal}`)
      return readFileSync(file).toString('base64')
    },
    ticketOf: async (principal, password) => {
      const { code, stderr } = await run(findProgram('kinit'), ['-f', principal], {
        env,
        input: `${password}\n`,
      })
      if (code !== 0) throw new Error(`kinit: ${stderr}`)
    },
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
