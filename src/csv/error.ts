/** What is wrong with a table, and where: rows and columns are counted from 1, as a spreadsheet shows them. */

export interface Place {
  row?: number
  column?: number
}

/** The text is no table, or not one that can be read: nothing after this place was looked at. */
export class CsvError extends Error {
  override readonly name = 'CsvError'
  readonly place: Place

  constructor(message: string, place: Place = {}) {
    super(message)
    this.place = place
  }
}

/** One cell does not hold what its column is for. */
export class CellError extends Error {
  override readonly name = 'CellError'
}
