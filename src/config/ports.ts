/** The ports of the listeners before they are used: two of one, and those that cannot be bound. */
import { createSocket } from 'node:dgram'
import { createServer, isIPv6 } from 'node:net'
import { explainBindError } from './bind-error.ts'
import type { Problem } from './check.ts'
import type { Config, ListenAddress } from './config.ts'

/** "::" listens for IPv4 too. */
const ALL = '::'
const ALL_OF_IPV4 = '0.0.0.0'

/** Returns a problem for each listener that wants the address of an earlier one. */
export function sharedPorts(listen: Readonly<Record<string, ListenAddress>>): Problem[] {
  const named = Object.entries(listen)
  return named.flatMap(([name, address], i) => {
    const earlier = named.slice(0, i).find(([, other]) => meet(address, other))
    if (earlier === undefined) return []
    const message = `expected a port of its own, got ${address.port}, which listen.${earlier[0]} has too`
    return [{ path: ['listen', name, 'port'], message }]
  })
}

/** Whether only one of both addresses can be bound. */
export function meet(one: ListenAddress, other: ListenAddress): boolean {
  // The system chooses another one for each 0.
  if (one.port !== other.port || one.port === 0) return false
  return one.host === other.host || covers(one.host, other.host) || covers(other.host, one.host)
}

const covers = (host: string, other: string) => host === ALL || (host === ALL_OF_IPV4 && !isIPv6(other))

/** Returns every address that the broker binds, with its name in messages. */
export function addressesOf({ listen, snmp }: Config): [name: string, address: ListenAddress][] {
  return [...Object.entries(listen), ...(snmp.agent ? [['snmp', snmp.agent] as [string, ListenAddress]] : [])]
}

/** Binds the address for a moment. Returns why it cannot be bound, and the remedy, or undefined if it can. */
export async function portFault(name: string, address: ListenAddress): Promise<string | undefined> {
  const error = await (name === 'snmp' ? datagramFault(address) : streamFault(address))
  return error && explainBindError(error, name, address)
}

const streamFault = ({ host, port }: ListenAddress) =>
  new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port }, () => server.close(() => resolve(undefined)))
  })

const datagramFault = ({ host, port }: ListenAddress) =>
  new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    socket.once('error', resolve)
    socket.bind({ address: host, port }, () => socket.close(() => resolve(undefined)))
  })
