/**
 * Checks requests for channels of forwarded connections: from the client, to addresses that the target dials,
 * and from the target, to listeners and grants that the client has there. Their rights were checked before
 * (decisions.ts).
 */
import { isConnectAllowed } from '../../../src/model/forward-rules.ts'
import type { Right } from '../../../src/model/rights.ts'
import {
  addressFlaw,
  addressText,
  buildAddress,
  buildConnection,
  buildDirectSocket,
  buildForwardedSocket,
  parseAddress,
  parseConnection,
  parseDirectSocket,
  parseForwardedSocket,
  pathFlaw,
  pathText,
} from '../codec/forwarding.ts'
import type { ChannelOpen } from '../codec/messages.ts'
import type { ChannelHost, Opened } from './channel.ts'
import { ForwardedChannel, type Forwarding } from './forwarding-channel.ts'
import type { GlobalRequests } from './forwarding-requests.ts'
import { X11Channel, type X11Grant } from './x11.ts'

/** A refusal, with the destination if it could be parsed. */
export interface Refused {
  refused: string
  destination?: string
}

/** Grants of the session's channels for connections from the target. */
export interface Grants {
  x11(): readonly X11Grant[]
  agent(): boolean
}

/** Creates the channel once it has its number. */
export interface Accepted {
  destination?: string
  make(host: ChannelHost, id: number, opened: Opened): ForwardedChannel
}

/** Checks a connection that the client requests from the target. Throws MalformedError. */
export function openByClient(
  { type, typeData }: ChannelOpen,
  right: Right,
  forwardTo: readonly string[],
): Accepted | Refused {
  if (type === 'direct-streamlocal@openssh.com') {
    const path = parseDirectSocket(typeData)
    const flaw = pathFlaw(path)
    const destination = pathText(path)
    if (flaw !== undefined) return { refused: flaw, destination }
    const recorded = { kind: 'direct-streamlocal', subprotocol: right, destination } as const
    return accepted('client', { recorded, type, typeData: buildDirectSocket(path) })
  }
  const connection = parseConnection(typeData)
  const { to, from } = connection
  const destination = addressText(to)
  const flaw = addressFlaw(to) ?? addressFlaw(from, true)
  if (flaw !== undefined) return { refused: flaw, destination }
  if (!isConnectAllowed(forwardTo, to.host, to.port))
    return { refused: `the connection policy forwards nothing to ${destination}`, destination }
  const recorded = { kind: 'direct-tcpip', subprotocol: right, destination } as const
  return accepted('client', { recorded, type, typeData: buildConnection(connection) })
}

/** Checks a connection that the target forwards to the client. Throws MalformedError. */
export function openByTarget(
  { type, typeData }: ChannelOpen,
  right: Right,
  binds: GlobalRequests,
  grants: Grants,
): Accepted | Refused {
  switch (type) {
    case 'forwarded-tcpip': {
      const connection = parseConnection(typeData)
      const { to, from } = connection
      const destination = addressText(to)
      if (!binds.isBound({ kind: 'tcp', address: to })) return { ...UNASKED, destination }
      const flaw = addressFlaw(from, true)
      if (flaw !== undefined) return { refused: flaw, destination }
      const recorded = { kind: 'forwarded-tcpip', subprotocol: right, destination } as const
      return accepted('target', { recorded, type, typeData: buildConnection(connection) })
    }
    case 'forwarded-streamlocal@openssh.com': {
      const path = parseForwardedSocket(typeData)
      const destination = pathText(path)
      if (!binds.isBound({ kind: 'socket', path })) return { ...UNASKED, destination }
      const recorded = { kind: 'forwarded-streamlocal', subprotocol: right, destination } as const
      return accepted('target', { recorded, type, typeData: buildForwardedSocket(path) })
    }
    case 'x11': {
      const from = parseAddress(typeData)
      if (!grants.x11().some(({ single, used }) => !single || !used)) return UNASKED
      const flaw = addressFlaw(from, true)
      if (flaw !== undefined) return { refused: flaw }
      const recorded = { kind: 'x11', subprotocol: right } as const
      const forwarding: Forwarding = { recorded, type, typeData: buildAddress(from) }
      return {
        make: (host, id, opened) => new X11Channel(host, id, opened, forwarding, () => grants.x11()),
      }
    }
    default: {
      if (!grants.agent()) return UNASKED
      const recorded = { kind: 'auth-agent', subprotocol: right } as const
      return accepted('target', { recorded, type, typeData: NOTHING })
    }
  }
}

const NOTHING = new Uint8Array(0)
const UNASKED: Refused = { refused: 'nobody asked for it' }

function accepted(by: 'client' | 'target', forwarding: Forwarding): Accepted {
  const { destination } = forwarding.recorded
  return {
    ...(destination !== undefined && { destination }),
    make: (host, id, opened) => new ForwardedChannel(host, id, by, opened, forwarding),
  }
}
