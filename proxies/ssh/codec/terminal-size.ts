/** Terminal sizes in characters, as clients claim them and as the bastion uses them. */

export interface Size {
  columns: number
  rows: number
}

/** The default size of a terminal. */
export const USUAL_SIZE: Size = { columns: 80, rows: 24 }

const USUAL_CELLS = USUAL_SIZE.columns * USUAL_SIZE.rows

/** RFC 4254 6.2: a dimension of zero has to be ignored. The target still receives the client's own values. */
export function knownSize({ columns, rows }: Size): Size {
  return { columns: columns || USUAL_SIZE.columns, rows: rows || USUAL_SIZE.rows }
}

/**
 * The screen size for reading command lines: high enough for a line and its prompt, even if the client claims
 * less. Line editors move the cursor by steps, so extra rows do not disturb them.
 */
export function readingSize(size: Size): Size {
  const { columns, rows } = knownSize(size)
  return { columns, rows: Math.max(rows, USUAL_SIZE.rows, Math.ceil(USUAL_CELLS / columns)) }
}

/**
 * Outside these sizes a line editor's output is unreliable: the editor lacks room, or draws more than the
 * reader follows.
 */
const LEAST_READABLE: Size = { columns: 20, rows: 2 }
const MOST_READABLE_COLUMNS = 512

export function isReadable(size: Size): boolean {
  const { columns, rows } = knownSize(size)
  return LEAST_READABLE.columns <= columns && columns <= MOST_READABLE_COLUMNS && LEAST_READABLE.rows <= rows
}
