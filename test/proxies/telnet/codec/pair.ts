/** An endpoint whose events and bytes are kept, and two that are connected. */
import { Buffer } from 'node:buffer'
import { type EndpointOptions, TelnetEndpoint } from '../../../../proxies/telnet/codec/endpoint.ts'
import { type Event, hex, keep } from '../../stream-events.ts'

export interface Kept {
  endpoint: TelnetEndpoint
  events: Event[]
  /** Returns the bytes written since the last call. */
  written(): Buffer
}

export function createEndpoint(
  role: EndpointOptions['role'],
  options: Partial<Pick<EndpointOptions, 'now' | 'terminalType' | 'windowSize'>> = {},
): Kept {
  const events: Event[] = []
  let out: Uint8Array[] = []
  const endpoint = new TelnetEndpoint({
    role,
    now: () => 0,
    write: (bytes) => out.push(Buffer.from(bytes)),
    writeUrgent: (bytes) => {
      events.push(['urgent', hex(bytes)])
      out.push(Buffer.from(bytes))
    },
    visitor: {
      data: (bytes) => keep(events, 'data', Buffer.from(bytes).toString('latin1')),
      command: (code) => keep(events, 'command', code),
      option: (side, option, isOn) => keep(events, 'option', side, option, isOn),
      windowSize: (size) => keep(events, 'windowSize', size),
      terminalType: (name) => keep(events, 'terminalType', name),
      environment: (variables) => keep(events, 'environment', variables),
    },
    ...options,
  })
  return {
    endpoint,
    events,
    written() {
      const all = Buffer.concat(out)
      out = []
      return all
    },
  }
}

/** Delivers the bytes of each to the other until both are silent; returns how many rounds that took. */
export function settle(one: Kept, other: Kept): number {
  for (let round = 0; ; round++) {
    const fromOne = one.written()
    const fromOther = other.written()
    if (fromOne.length === 0 && fromOther.length === 0) return round
    other.endpoint.receive(fromOne)
    one.endpoint.receive(fromOther)
  }
}
