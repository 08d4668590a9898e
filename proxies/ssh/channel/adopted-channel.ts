/** A channel that is already open to the client and moves to the relay. */
export interface AdoptedChannel {
  id: number
  /** Set if the client's main request was already answered: it chose its target in the menu. */
  isAnswered: boolean
  client: { id: number; window: number; maxPacket: number }
  /** Bytes that the client may still send without a further grant. */
  credit: number
  /** The client's requests: env, pty-req with the present size, and shell. */
  messages: Buffer[]
}
