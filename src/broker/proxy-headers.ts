/** The PROXY headers of all listeners, and how their faults are told. */
import type { Config } from '../config/config.ts'
import type { Logger } from '../host/log.ts'
import type { Refusal } from '../sockets/header-read.ts'
import { HEADER_MS, ProxyHeaders, type ProxyHeadersOptions } from '../sockets/proxy-headers.ts'
import type { Metrics } from './metrics.ts'

/** Milliseconds between two lines of the log about one listener and one kind of fault: a metric counts all. */
const QUIET_MS = 60_000

const REMEDIES: Readonly<Record<Refusal, string>> = {
  missing: 'let the balancer send the header (haproxy: send-proxy-v2), or take it out of proxy_protocol.from',
  malformed: 'let the balancer send version 1 or 2 of the header (haproxy: send-proxy-v2)',
  slow: 'let the balancer send the header (haproxy: send-proxy-v2), or take it out of proxy_protocol.from',
  torn: 'look at the balancer and at the way to it',
}

export interface ProxyHeadersParts {
  logger: Pick<Logger, 'debug' | 'warn'>
  metrics: Pick<Metrics, 'proxyHeaderRefusals'>
  /** Milliseconds from any point. */
  monotonic: () => number
}

/** A header may take no longer than a sign-in. */
export function openProxyHeaders(
  { proxyProtocol, loginGrace }: Config,
  parts: ProxyHeadersParts,
): ProxyHeaders {
  return new ProxyHeaders({
    from: proxyProtocol.from,
    timeMs: Math.min(HEADER_MS, loginGrace),
    ...reportsOf(parts),
  })
}

/** Returns the functions that log and count what becomes of headers. */
export function reportsOf({
  logger,
  metrics,
  monotonic,
}: ProxyHeadersParts): Pick<ProxyHeadersOptions, 'onClaimed' | 'onRefused'> {
  const told = new Map<string, { at: number; since: number }>()
  return {
    onClaimed: (listener, balancer, client) =>
      logger.debug({ listener, balancer: balancer.address, client }, 'a balancer has passed a client on'),
    onRefused: (listener, balancer, refusal, fault) => {
      metrics.proxyHeaderRefusals.inc({ listener, reason: refusal })
      const kind = `${listener} ${refusal}`
      const last = told.get(kind)
      if (last && monotonic() - last.at < QUIET_MS) {
        last.since++
        return
      }
      told.set(kind, { at: monotonic(), since: 0 })
      logger.warn(
        { listener, balancer: balancer.address, fault, untold: last?.since ?? 0 },
        `a connection of a balancer was closed: ${REMEDIES[refusal]}`,
      )
    },
  }
}
