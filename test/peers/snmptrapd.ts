/** A real snmptrapd that decodes notifications with our MIB and writes one line for each. */
import { createSocket } from 'node:dgram'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startDaemon } from './process.ts'
import { findProgram } from './program.ts'

/** The folder of our MIB. */
export const MIB_FOLDER = fileURLToPath(new URL('../../config', import.meta.url))
const BASE_MIBS = fileURLToPath(new URL('../../node_modules/net-snmp/lib/mibs', import.meta.url))

/** Returns a folder with the base MIBs under their module names; Debian has none of them. */
export function baseMibs(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-mibs-'))
  for (const file of readdirSync(BASE_MIBS)) {
    if (file.endsWith('.mib')) copyFileSync(join(BASE_MIBS, file), join(folder, basename(file, '.mib')))
  }
  return folder
}

export interface Notification {
  /** `TRAP2, SNMP v2c, community …`, `INFORM, SNMP v3, user …`. */
  kind: string
  /** Object → value, as snmptrapd prints both with our MIB: `SALLYPORT-MIB::sallyportUser.0`. */
  objects: Record<string, string>
}

export interface Snmptrapd {
  port: number
  community: string
  user: { name: string; authPassword: string; privPassword: string }
  notifications(): Notification[]
  /** Waits until there are `count` notifications; rejects after ten seconds. */
  waitFor(count: number): Promise<Notification[]>
  /** Returns its raw output. */
  raw(): string
  stop(): Promise<void>
}

const COMMUNITY = 'sallyport-test'
const USER = { name: 'sallyport', authPassword: 'auth-password-1', privPassword: 'priv-password-1' }
const SEPARATOR = '|;|'

const configuration = `
disableAuthorization no
authCommunity log ${COMMUNITY}
createUser ${USER.name} SHA-256 ${USER.authPassword} AES ${USER.privPassword}
authUser log ${USER.name} priv
format2 NOTIFICATION%P ${SEPARATOR}%V${SEPARATOR}%v\\n
`

function freeUdpPort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4')
    socket.on('error', reject)
    socket.bind(0, '127.0.0.1', () => {
      const { port } = socket.address()
      socket.close(() => resolve(port))
    })
  })
}

function parse(text: string): Notification[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('NOTIFICATION'))
    .map((line) => {
      const [kind = '', ...objects] = line.slice('NOTIFICATION'.length).split(SEPARATOR)
      return {
        kind: kind.trim(),
        objects: Object.fromEntries(
          objects.map((object) => {
            const at = object.indexOf(' = ')
            return [object.slice(0, at), object.slice(at + 3)]
          }),
        ),
      }
    })
}

export async function startSnmptrapd(): Promise<Snmptrapd> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-snmptrapd-'))
  const mibs = baseMibs()
  const port = await freeUdpPort()
  const log = join(folder, 'traps.log')
  writeFileSync(join(folder, 'snmptrapd.conf'), configuration)
  mkdirSync(join(folder, 'persistent'))
  const raw = (): string => {
    try {
      return readFileSync(log, 'utf8')
    } catch {
      return ''
    }
  }
  const daemon = await startDaemon(
    findProgram('snmptrapd'),
    // -f foreground, -C only this configuration, -n no names for addresses
    ['-f', '-C', '-c', join(folder, 'snmptrapd.conf'), '-n', '-Lf', log, `udp:127.0.0.1:${port}`],
    () => raw().includes('NET-SNMP version'),
    {
      env: {
        ...process.env,
        MIBDIRS: `${MIB_FOLDER}:${mibs}`,
        MIBS: 'SALLYPORT-MIB:SNMPv2-MIB',
        SNMP_PERSISTENT_DIR: join(folder, 'persistent'),
      },
    },
  )
  return {
    port,
    community: COMMUNITY,
    user: USER,
    raw,
    notifications: () => parse(raw()),
    async waitFor(count) {
      for (const deadline = Date.now() + 10_000; ; await sleep(20)) {
        const found = parse(raw())
        if (found.length >= count) return found
        if (Date.now() > deadline) {
          throw new Error(`expected ${count} notifications, got ${found.length}: ${raw()} ${daemon.log()}`)
        }
      }
    },
    async stop() {
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
      rmSync(mibs, { recursive: true, force: true })
    },
  }
}
