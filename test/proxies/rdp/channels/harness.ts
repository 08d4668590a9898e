/** A channel's filter between two ends that send whole messages and keep what they get. */

import type { SendChunk, Side } from '../../../../proxies/rdp/channels/direction.ts'
import { buildChunks, ChannelAssembler } from '../../../../proxies/rdp/codec/virtual-channel.ts'
import { type Event, hex, keep } from '../../stream-events.ts'

export interface Ends {
  /** Sends a message in chunks through the filter, and returns what each side gets for it, in hex. */
  say(from: Side, message: Uint8Array): { client: string[]; target: string[] }
  /** The same of chunks, which need not be a whole message. */
  sayChunks(from: Side, chunks: readonly Uint8Array[]): { client: string[]; target: string[] }
  /** What each side gets for something else. */
  during(act: () => void): { client: string[]; target: string[] }
  heard: Event[]
  /** Nothing more comes. */
  close(): void
}

interface Filter {
  receive(from: Side, chunk: Uint8Array): void
  close?(): void
}

/** `visitor` notes what it is told under the names of its methods. */
export function betweenEnds<T>(
  kinds: readonly (keyof T & string)[],
  create: (options: { visitor: T; send: SendChunk }) => Filter,
): Ends {
  const heard: Event[] = []
  const got: Record<Side, string[]> = { client: [], target: [] }
  const assemblers = {
    client: new ChannelAssembler('client', 1 << 28),
    target: new ChannelAssembler('target', 1 << 28),
  }
  const visitor = Object.fromEntries(
    kinds.map((kind) => [kind, (...values: unknown[]) => keep(heard, kind, ...values)]),
  ) as T
  const filter = create({
    visitor,
    send: (to, chunk) => {
      const message = assemblers[to].feed(chunk)
      if (message) got[to].push(hex(message))
    },
  })
  const during: Ends['during'] = (act) => {
    got.client = []
    got.target = []
    act()
    return { client: got.client, target: got.target }
  }
  const sayChunks: Ends['sayChunks'] = (from, chunks) =>
    during(() => {
      for (const chunk of chunks) filter.receive(from, chunk)
    })
  return {
    heard,
    during,
    close: () => filter.close?.(),
    sayChunks,
    say: (from, message) => sayChunks(from, buildChunks(message)),
  }
}
