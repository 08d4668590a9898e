/** A session worker that does nothing: it says that it is in its cage, and waits. */
import { settle } from '../../src/confine/settle.ts'

settle()
process.stdout.write('settled\n')
setInterval(() => {}, 60_000)
