/** The forms of a sent packet, encrypted in place by the ciphers of ssh2's native binding: see openers.ts. */
import type { Ssh2Cipher } from './ssh2.ts'

/** One cipher with its present keys, in the order of the packets. */
export interface Sealer {
  /** Padding fills the packet to a multiple of this. */
  readonly block: number
  /** Bytes of packet_length that count for that multiple: all 4, or none. */
  readonly counted: number
  /** Bytes that the packet needs behind it. */
  readonly room: number
  /** Bytes of the room that are sent: some MACs are cut. */
  readonly tag: number
  /** Encrypts a packet with room behind it. Returns false if the connection has ended. */
  seal(packet: Uint8Array): boolean
}

/** Returns the sealer of ssh2's present cipher, or undefined if only ssh2 itself encrypts with it. */
export function sealerOf(cipher: Ssh2Cipher): Sealer | undefined {
  const seal = (packet: Uint8Array): boolean => {
    // ssh2 has freed the cipher.
    if (cipher._dead) return false
    cipher._instance.encrypt(packet, cipher.outSeqno)
    cipher.outSeqno = (cipher.outSeqno + 1) >>> 0
    return true
  }
  switch (cipher.constructor.name) {
    case 'AESGCMCipherBinding':
      return { block: 16, counted: 0, room: 16, tag: 16, seal }
    case 'ChaChaPolyCipherBinding':
      return { block: 8, counted: 0, room: 16, tag: 16, seal }
    case 'GenericCipherBinding':
      return {
        block: cipher._encBlockLen,
        counted: 4 - cipher._aadLen,
        room: cipher._macLen,
        tag: cipher._macActualLen,
        seal,
      }
    default:
      return undefined
  }
}
