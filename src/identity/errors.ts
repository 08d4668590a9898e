/** More people sign in at this moment than the broker computes hashes for: to be tried again. */
export class BusyError extends Error {
  override readonly name = 'BusyError'

  constructor() {
    super('too many sign-ins at this moment: try again')
  }
}
