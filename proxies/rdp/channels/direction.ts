/** Directions of a channel's filter, and the sending of its messages. */
import { buildChunks } from '../codec/virtual-channel.ts'

export type Side = 'client' | 'target'

/** `up` to the target, `down` to the client. */
export type Direction = 'up' | 'down'

export const directionFrom = (side: Side): Direction => (side === 'client' ? 'up' : 'down')
export const otherSide = (side: Side): Side => (side === 'client' ? 'target' : 'client')

/** Sends a chunk with its header to one side. */
export type SendChunk = (to: Side, chunk: Uint8Array) => void

/** Sends a whole message in chunks. */
export function sendMessage(send: SendChunk, to: Side, message: Uint8Array): void {
  for (const chunk of buildChunks(message)) send(to, chunk)
}
