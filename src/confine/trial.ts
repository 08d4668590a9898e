/** A worker that does nothing but report its cage (try-cage.ts). */
import { settle } from './settle.ts'

process.stdout.write(JSON.stringify(settle()))
