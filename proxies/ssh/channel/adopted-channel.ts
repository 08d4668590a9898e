/** A channel that is open to the client already, on its way to the relay. */
export interface AdoptedChannel {
  id: number
  /** The client has the answer to its main request: it chose in the menu. */
  isAnswered: boolean
  client: { id: number; window: number; maxPacket: number }
  /** Bytes that the client may still send without a further grant. */
  credit: number
  /** What the client has asked for, as env, pty-req with the present size, and shell. */
  messages: Buffer[]
}
