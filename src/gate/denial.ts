/** A session may not be opened. The reason is audited; the message is for the user. */
export class Denial extends Error {
  override readonly name = 'Denial'
  readonly reason: string

  constructor(reason: string, message = reason) {
    super(message)
    this.reason = reason
  }
}
