/**
 * The findings of `sallyport check` about receivers of events: each is connected to, and gets nothing but an empty
 * datagram where there are no connections.
 */

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { SyslogSink } from '../audit/sinks/syslog.ts'
import type { Config, SyslogTarget, TrapTarget } from '../config/config.ts'
import type { Finding } from './finding.ts'

/** Milliseconds in which a receiver that refuses does so: by an ICMP message, or an alert of TLS 1.3. */
const REFUSAL_MS = 500
/** Milliseconds for a receiver; a stream has ten seconds for its connection. */
const RECEIVER_MS = 15_000

/** Tries all receivers at a time. */
export async function receivers({ syslog, snmp, hostname }: Config): Promise<Finding[]> {
  return await Promise.all([
    ...syslog.map((target) => syslogFinding(target, hostname)),
    ...snmp.traps.map(trapFinding),
  ])
}

async function syslogFinding(target: SyslogTarget, hostname: string): Promise<Finding> {
  const subject = 'syslog'
  const where = `${target.transport}://${placeOf(target)}`
  if (target.transport === 'udp') return await datagram(subject, where, target)
  try {
    const origin = { hostname, version: '', processId: process.pid, enterprise: 0 }
    const sink = new SyslogSink({ target, origin })
    await within(async () => {
      const broken = Promise.withResolvers<never>()
      const lost = (reason: string) => broken.reject(new Error(reason))
      const connection = await sink.connect({ settled: () => undefined, broken: lost })
      try {
        await Promise.race([broken.promise, sleep(REFUSAL_MS)])
      } finally {
        await connection.close()
      }
    })
    const tls = target.transport === 'tls' ? ', and its certificate is in order' : ''
    return { level: 'ok', subject, text: `${where} accepts connections${tls}` }
  } catch (error) {
    const remedy = `look at the receiver, the firewall, and syslog${target.transport === 'tls' ? ' (ca, client_certificate)' : ''}`
    return { level: 'error', subject, text: `${where}: ${(error as Error).message}: ${remedy}` }
  }
}

async function trapFinding(target: TrapTarget): Promise<Finding> {
  return await datagram('traps', `udp://${placeOf(target)}`, target)
}

async function datagram(
  subject: string,
  where: string,
  { host, port }: { host: string; port: number },
): Promise<Finding> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  try {
    await within(async () => {
      const refused = once(socket, 'error').then(([error]) => Promise.reject(error))
      refused.catch(() => undefined)
      const connected = once(socket, 'connect')
      socket.connect(port, host)
      await Promise.race([connected, refused])
      socket.send('')
      await Promise.race([refused, sleep(REFUSAL_MS)])
    })
    const text = `${where} has not refused a datagram: UDP acknowledges nothing, so look for an event at the receiver`
    return { level: 'ok', subject, text }
  } catch (error) {
    const text = `${where}: ${(error as Error).message}: start the receiver, or correct host and port`
    return { level: 'error', subject, text }
  } finally {
    socket.close()
  }
}

/** @throws the error of the work, or one if it takes longer than a receiver may */
async function within(work: () => Promise<void>): Promise<void> {
  const late = new AbortController()
  const limit = sleep(RECEIVER_MS, undefined, { signal: late.signal }).then(() => {
    throw new Error(`no answer within ${RECEIVER_MS / 1000} s`)
  })
  limit.catch(() => undefined)
  try {
    await Promise.race([work(), limit])
  } finally {
    late.abort()
  }
}

const placeOf = ({ host, port }: { host: string; port: number }) =>
  `${isIPv6(host) ? `[${host}]` : host}:${port}`
