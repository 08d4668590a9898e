/** The command line as a program (commands/command-line.ts). */
import { Buffer } from 'node:buffer'
import { commandLine } from './commands/command-line.ts'
import { withholdFromCoreDumps } from './host/process-memory.ts'

// Node cuts small buffers from a pool of 64 KiB, which stays in memory as long as any of them: the few that a
// session keeps (names of versions, keys, tags) cost it 36 KiB, and each lies beside other users' data.
Buffer.poolSize = 0
withholdFromCoreDumps()

process.exitCode = await commandLine(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  error: (text) => process.stderr.write(text),
})
