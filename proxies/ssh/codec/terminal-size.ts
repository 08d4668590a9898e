/** The sizes that clients claim of their terminals, in characters, and what is made of them. */

export interface Size {
  columns: number
  rows: number
}

/** What a terminal has where nobody says what it has. */
export const USUAL_SIZE: Size = { columns: 80, rows: 24 }

const USUAL_CELLS = USUAL_SIZE.columns * USUAL_SIZE.rows

/** RFC 4254 6.2: a dimension of zero has to be ignored. The target is sent what the client has said. */
export function knownSize({ columns, rows }: Size): Size {
  return { columns: columns || USUAL_SIZE.columns, rows: rows || USUAL_SIZE.rows }
}

/**
 * The screen from which command lines are read: high enough for a line and its prompt, however small the client says
 * that it is. Line editors move by steps, so that rows which the target does not know of are not in their way.
 */
export function readingSize(size: Size): Size {
  const { columns, rows } = knownSize(size)
  return { columns, rows: Math.max(rows, USUAL_SIZE.rows, Math.ceil(USUAL_CELLS / columns)) }
}

/** Beyond these sizes what a line editor draws cannot be relied on: it has no room to draw in, or more than is followed. */
const LEAST_READABLE: Size = { columns: 20, rows: 2 }
const MOST_READABLE_COLUMNS = 512

export function isReadable(size: Size): boolean {
  const { columns, rows } = knownSize(size)
  return LEAST_READABLE.columns <= columns && columns <= MOST_READABLE_COLUMNS && LEAST_READABLE.rows <= rows
}
