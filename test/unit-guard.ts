/** Isolates the tests of the project `unit`: starting a program or thread, or opening a socket, throws. */
import childProcess from 'node:child_process'
import dgram from 'node:dgram'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import workers from 'node:worker_threads'

function refuse(what: string): () => never {
  return () => {
    throw new Error(`a unit test ${what}: give its file to another project in test/projects.ts`)
  }
}

const startsProgram = refuse('starts a program')
const listens = refuse('listens on a socket')
const PROGRAMS = ['exec', 'execFile', 'execFileSync', 'execSync', 'fork', 'spawn', 'spawnSync'] as const

for (const name of PROGRAMS) Object.assign(childProcess, { [name]: startsProgram })
Object.assign(net.Server.prototype, { listen: listens })
Object.assign(dgram.Socket.prototype, { bind: listens })
Object.assign(net.Socket.prototype, { connect: refuse('connects a socket') })
// A constructor: an arrow function could not be called with `new`.
Object.assign(workers, {
  Worker: class {
    constructor() {
      refuse('starts a thread')()
    }
  },
})
syncBuiltinESMExports()
