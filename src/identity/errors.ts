/** The broker cannot compute more password hashes at present; try again later. */
export class BusyError extends Error {
  override readonly name = 'BusyError'

  constructor() {
    super('too many sign-ins at this moment: try again')
  }
}
