/** A channel's filter between two ends that send whole messages and keep those they receive. */

import type { SendChunk, Side } from '../../../../proxies/rdp/channels/direction.ts'
import { buildChunks, ChannelAssembler } from '../../../../proxies/rdp/codec/virtual-channel.ts'
import { type Event, hex, keep } from '../../stream-events.ts'

export interface Ends {
  /** Sends a message in chunks through the filter, and returns each side's messages in hex. */
  say(from: Side, message: Uint8Array): { client: string[]; target: string[] }
  /** As `say`, for chunks that need not form a whole message. */
  sayChunks(from: Side, chunks: readonly Uint8Array[]): { client: string[]; target: string[] }
  /** Returns each side's messages sent during `act`. */
  during(act: () => void): { client: string[]; target: string[] }
  heard: Event[]
  /** Closes the filter. */
  close(): void
}

interface Filter {
  receive(from: Side, chunk: Uint8Array): void
  close?(): void
}

/** `visitor` notes its calls under the names of its methods. */
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
