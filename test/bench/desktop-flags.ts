/** The command-line options of the desktop benches. */
import { parseArgs } from 'node:util'

export const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    size: { type: 'string' },
    sessions: { type: 'string' },
    unrecorded: { type: 'boolean', default: false },
  },
})
