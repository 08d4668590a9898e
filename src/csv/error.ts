/** Faults of a table, with their place: rows and columns are counted from 1, as in a spreadsheet. */

export interface Place {
  row?: number
  column?: number
}

/** The text is not a readable table: nothing after this place was read. */
export class CsvError extends Error {
  override readonly name = 'CsvError'
  readonly place: Place

  constructor(message: string, place: Place = {}) {
    super(message)
    this.place = place
  }
}

/** A cell's content does not fit its column. */
export class CellError extends Error {
  override readonly name = 'CellError'
}
