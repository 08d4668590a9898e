/** Where a channel's filter sends what it lets through or answers itself. */
import { buildChunks } from '../codec/virtual-channel.ts'

export type Side = 'client' | 'target'

/** Which way something goes: up to the target, down to the client. */
export type Direction = 'up' | 'down'

export const directionFrom = (side: Side): Direction => (side === 'client' ? 'up' : 'down')
export const otherSide = (side: Side): Side => (side === 'client' ? 'target' : 'client')

/** A chunk with its header for one side. */
export type SendChunk = (to: Side, chunk: Uint8Array) => void

/** A whole message, in chunks. */
export function sendMessage(send: SendChunk, to: Side, message: Uint8Array): void {
  for (const chunk of buildChunks(message)) send(to, chunk)
}
