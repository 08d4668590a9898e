/** The peers of connections, and those that are named by a balancer and not by the system. */
import { plainAddress } from '../model/networks.ts'
import type { TcpHandle } from './accept.ts'

export interface Peer {
  address: string
  port: number
}

/** Returns the connection's peer, or undefined if it is gone. */
export function peerOf(handle: TcpHandle): Peer | undefined {
  const peer: { address?: string; port?: number } = {}
  if (handle.getpeername(peer) !== 0) return undefined
  const { address, port } = peer
  return address === undefined || port === undefined ? undefined : { address: plainAddress(address), port }
}

/**
 * Makes the handle, and every socket that is made of it, report this peer. Nothing else changes: bytes pass as
 * before.
 */
export function claimPeer(handle: TcpHandle, peer: Peer): void {
  const family = peer.address.includes(':') ? 'IPv6' : 'IPv4'
  handle.getpeername = (into) => {
    Object.assign(into, peer, { family })
    return 0
  }
}
