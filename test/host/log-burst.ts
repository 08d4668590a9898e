/** Logs a burst to standard output, and reports the milliseconds of the slowest line on standard error. */
import { openLog } from '../../src/host/log.ts'

const LINES = 1_000
const text = 'x'.repeat(1_000)

// As `serve` does, before it logs anything.
process.stdout.write('ready\n')
const { logger } = openLog({ level: 'info', file: '-' }, (error) => {
  throw error
})
let slowest = 0
for (let line = 0; line < LINES; line++) {
  const begin = performance.now()
  logger.info({ line, text }, 'burst')
  slowest = Math.max(slowest, performance.now() - begin)
}
process.stderr.write(String(slowest))
