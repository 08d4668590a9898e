/** Explains why a listener could not bind, and the remedy, to the person who started the broker. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** Ports below it are privileged unless net.ipv4.ip_unprivileged_port_start differs. */
const FIRST_FREE_PORT = 1024
/** Tables of sockets in /proc/net, and the state of one that receives: listening, or unconnected. */
const TABLES = {
  tcp: { files: ['/proc/net/tcp', '/proc/net/tcp6'], state: '0A' },
  udp: { files: ['/proc/net/udp', '/proc/net/udp6'], state: '07' },
} as const
type Transport = keyof typeof TABLES
/** Processes to search in /proc before giving up: the result only improves a message. */
const MAX_PROCESSES = 20_000

/** Returns the inodes of the sockets that listen on `port`, as far as /proc shows them. */
function listeningInodes(port: number, transport: Transport): Set<string> {
  const inodes = new Set<string>()
  const { files, state: listening } = TABLES[transport]
  for (const table of files) {
    let text: string
    try {
      text = readFileSync(table, 'latin1')
    } catch {
      continue
    }
    for (const line of text.split('\n').slice(1)) {
      // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
      const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
      const hexPort = local?.split(':')[1]
      if (state === listening && inode && hexPort && Number.parseInt(hexPort, 16) === port) inodes.add(inode)
    }
  }
  return inodes
}

function holdsSocket(pid: string, inodes: Set<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]
      return inode !== undefined && inodes.has(inode)
    })
  } catch {
    return false
  }
}

/**
 * Returns the program that listens on a port of this machine, `sshd (process 812)`, or undefined if /proc does
 * not show it.
 */
export function portHolder(port: number, transport: Transport = 'tcp'): string | undefined {
  const inodes = listeningInodes(port, transport)
  if (inodes.size === 0) return undefined
  let processes: string[]
  try {
    processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return undefined
  }
  for (const pid of processes.slice(0, MAX_PROCESSES)) {
    if (!holdsSocket(pid, inodes)) continue
    try {
      const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
      return `${name} (process ${pid})`
    } catch {
      return `process ${pid}`
    }
  }
  return undefined
}

/**
 * Returns the message for a listener that cannot bind. `name` is the listener's key under `listen` in the
 * configuration, or `snmp`; `address` is the one that it tried. Never throws.
 */
export function explainBindError(
  error: NodeJS.ErrnoException,
  name: string,
  address: { host: string; port: number },
): string {
  const where = `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`
  const head = `cannot listen for ${name} on ${where}`
  const key = name === 'snmp' ? 'snmp.agent' : `listen.${name}`
  const other = `set another port at ${key}.port in the configuration`
  switch (error.code) {
    case 'EADDRINUSE': {
      const holder = portHolder(address.port, name === 'snmp' ? 'udp' : 'tcp')
      return `${head}: the port is held by ${holder ?? 'another program'}; stop it, or ${other}`
    }
    case 'EACCES':
    case 'EPERM':
      return address.port < FIRST_FREE_PORT
        ? `${head}: ports below ${FIRST_FREE_PORT} need root or the capability CAP_NET_BIND_SERVICE ` +
            `(systemd: AmbientCapabilities=CAP_NET_BIND_SERVICE; by hand: ` +
            `setcap cap_net_bind_service=+ep ${process.execPath}); or ${other}`
        : `${head}: the system does not permit it (${error.code}); ${other}`
    case 'EADDRNOTAVAIL':
      return `${head}: no network interface of this machine has that address; correct ${key}.host`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `${head}: the name does not resolve; correct ${key}.host`
    case 'EAFNOSUPPORT':
      return `${head}: this machine has no IPv6; set ${key}.host to 0.0.0.0`
    default:
      return `${head}: ${error.message}; ${other}`
  }
}
