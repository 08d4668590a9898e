/**
 * The findings of `sallyport check` about receivers of events: each is connected to, and gets nothing but an empty
 * datagram where there are no connections, or the sign-in of a mail server.
 */

import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { SyslogSink } from '../audit/sinks/syslog.ts'
import type { Config, SyslogTarget, TrapTarget } from '../config/config.ts'
import type { Notification } from '../model/notifications.ts'
import type { Finding } from './finding.ts'

/** Milliseconds in which a receiver that refuses does so: by an ICMP message, or an alert of TLS 1.3. */
const REFUSAL_MS = 500
/** Milliseconds for a receiver; a stream has ten seconds for its connection. */
const RECEIVER_MS = 15_000

/** A receiver of the objects of `/notifications`. */
export interface Notified {
  notification: Pick<Notification, 'type' | 'notificationName'>
  sender: { reach(signal: AbortSignal): Promise<void> }
}

/** Tries all receivers at a time. */
export async function receivers(
  { syslog, snmp, hostname }: Config,
  limitMs = RECEIVER_MS,
): Promise<Finding[]> {
  return await Promise.all([
    ...syslog.map((target) => syslogFinding(target, hostname, limitMs)),
    ...snmp.traps.map(trapFinding),
  ])
}

/** Tries all at a time: a webhook up to its certificate, a mail server up to the sign-in. */
export async function notified(receivers: readonly Notified[], limitMs = RECEIVER_MS): Promise<Finding[]> {
  return await Promise.all(receivers.map((one) => notifiedFinding(one, limitMs)))
}

async function notifiedFinding({ notification, sender }: Notified, limitMs: number): Promise<Finding> {
  const { type, notificationName: name } = notification
  const subject = type === 'WEBHOOK' ? 'webhook' : 'mail'
  const reached = type === 'WEBHOOK' ? 'its certificate is in order' : 'the server lets the bastion in'
  try {
    await within((signal) => sender.reach(signal), limitMs)
    return { level: 'ok', subject, text: `${name}: ${reached}; nothing was sent` }
  } catch (error) {
    const text = `${name}: ${(error as Error).message}: look at the receiver, the firewall, and /notifications/${name}`
    return { level: 'error', subject, text }
  }
}

async function syslogFinding(target: SyslogTarget, hostname: string, limitMs: number): Promise<Finding> {
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
    }, limitMs)
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
    }, RECEIVER_MS)
    const text = `${where} has not refused a datagram: UDP acknowledges nothing, so look for an event at the receiver`
    return { level: 'ok', subject, text }
  } catch (error) {
    const text = `${where}: ${(error as Error).message}: start the receiver, or correct host and port`
    return { level: 'error', subject, text }
  } finally {
    socket.close()
  }
}

/** @throws the error of the work, or one if it takes longer than the limit, which aborts it */
async function within(work: (signal: AbortSignal) => Promise<void>, limitMs: number): Promise<void> {
  const [done, late] = [new AbortController(), new AbortController()]
  const limit = sleep(limitMs, undefined, { signal: done.signal }).then(() => {
    late.abort()
    throw new Error(`no answer within ${limitMs / 1000} s`)
  })
  limit.catch(() => undefined)
  try {
    await Promise.race([work(late.signal), limit])
  } finally {
    done.abort()
  }
}

const placeOf = ({ host, port }: { host: string; port: number }) =>
  `${isIPv6(host) ? `[${host}]` : host}:${port}`
