/** Unbound as a validating resolver that serves the zone `localhost` itself, signed by ldns, on 127.0.0.1. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Daemon, freePort, run, startDaemon } from './process.ts'
import { findProgram } from './program.ts'

export interface Zone {
  /** Lines of the zone file besides SOA and NS, with full names, as of `ssh-keygen -r localhost.`. */
  records: string[]
  /** `no`: unsigned. `other`: signed with a key that the resolver does not trust. Default: `yes`. */
  signed?: 'yes' | 'no' | 'other'
}

export interface Unbound {
  port: number
  /** Returns its log of the queries so far. */
  log(): string
  stop(): Promise<void>
}

async function must(folder: string, program: 'ldns-keygen' | 'ldns-signzone', args: string[]) {
  const done = await run(findProgram(program), args, { cwd: folder })
  if (done.code !== 0) throw new Error(`${program}: ${done.stderr}`)
  return done.stdout.trim()
}

const keyFor = (folder: string) =>
  must(folder, 'ldns-keygen', ['-a', 'ECDSAP256SHA256', '-k', '-r', '/dev/urandom', 'localhost.'])

/** Starts it; `port` 0 finds a free one. */
export async function startUnbound({ records, signed = 'yes' }: Zone, port = 0): Promise<Unbound> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-unbound-'))
  const chosen = port === 0 ? await freePort() : port
  const zone = join(folder, 'zone')
  writeFileSync(
    zone,
    [
      'localhost. 60 IN SOA localhost. root.localhost. 1 3600 600 86400 60',
      'localhost. 60 IN NS localhost.',
      'localhost. 60 IN A 127.0.0.1',
      ...records,
      '',
    ].join('\n'),
  )
  const trusted = await keyFor(folder)
  const signer = signed === 'other' ? await keyFor(folder) : trusted
  if (signed !== 'no') await must(folder, 'ldns-signzone', ['-n', '-o', 'localhost.', 'zone', signer])
  // without the package's own modules, keys and statistics
  const config = `
server:
  directory: "${folder}"
  username: ""
  chroot: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  log-queries: yes
  verbosity: 1
  do-daemonize: no
  interface: 127.0.0.1@${chosen}
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  local-zone: "localhost." nodefault
  module-config: "validator iterator"
  val-log-level: 2
  ${signed === 'no' ? '' : `trust-anchor: "${readFileSync(join(folder, `${trusted}.ds`), 'utf8').trim()}"`}
remote-control:
  control-enable: no
auth-zone:
  name: "localhost."
  zonefile: "${signed === 'no' ? zone : `${zone}.signed`}"
  for-upstream: yes
  for-downstream: no
`
  writeFileSync(join(folder, 'unbound.conf'), config)
  let daemon: Daemon
  try {
    daemon = await startDaemon(
      findProgram('unbound'),
      ['-d', '-c', join(folder, 'unbound.conf')],
      /start of service/,
    )
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  return {
    port: chosen,
    log: daemon.log,
    stop: async () => {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
