/** Stands for a broker: runs a program in a cage. Arguments: the cage as JSON, the program and its arguments. */
import { spawn } from 'node:child_process'
import type { Cage } from '../../src/confine/cage.ts'
import { confined } from '../../src/confine/command.ts'

const [cage, ...program] = process.argv.slice(2)
const {
  file,
  arguments: args,
  ...options
} = confined({ arguments: program, env: {} }, JSON.parse(cage!) as Cage)
const child = spawn(file, args, { ...options, stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'ipc'] })
child.stdio[3]!.on('data', (bytes: Buffer) => process.stdout.write(bytes))
child.on('message', (message) => process.stdout.write(JSON.stringify(message)))
child.on('exit', (code, signal) => {
  if (code !== 0) process.stderr.write(`the program ended with ${code ?? signal}\n`)
  process.exitCode = code ?? 1
})
for (let number = 1; number <= 100; number++) child.send(number)
child.send('last')
