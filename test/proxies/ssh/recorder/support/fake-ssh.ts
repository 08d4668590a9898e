/**
 * Replaces `ssh` as the transport program of sftp, scp, rsync, git and lftp: runs the remote command locally
 * and logs both directions in order. `fake-ssh.ts LOG SSH-ARGUMENTS…`; the log has, for each chunk, one byte
 * `c` (from the client), `t` (from the target) or `x` (the command), a uint32 length, the bytes.
 */
import { Buffer } from 'node:buffer'
import { spawn } from 'node:child_process'
import { openSync, writeSync } from 'node:fs'

const WITH_VALUE = /^-[olpiFS]$/

const [, , path = '', ...args] = process.argv
const log = openSync(path, 'a')

function note(kind: 'c' | 't' | 'x', data: Uint8Array): void {
  const head = Buffer.alloc(5)
  head.write(kind)
  head.writeUInt32BE(data.length, 1)
  writeSync(log, Buffer.concat([head, data]))
}

let subsystem = false
let at = 0
for (; at < args.length && args[at]!.startsWith('-') && args[at] !== '--'; at++) {
  if (args[at] === '-s') subsystem = true
  if (WITH_VALUE.test(args[at]!)) at++
}
if (args[at] === '--') at++
at++
if (args[at] === '-s') {
  subsystem = true
  at++
}
const command = args.slice(at).join(' ')
note('x', Buffer.from(command))
const child = subsystem
  ? spawn('/usr/lib/openssh/sftp-server', [], { stdio: ['pipe', 'pipe', 'inherit'] })
  : spawn('/bin/sh', ['-c', command], { stdio: ['pipe', 'pipe', 'inherit'] })

process.stdin.on('data', (data: Buffer) => {
  note('c', data)
  if (!child.stdin.write(data)) {
    process.stdin.pause()
    child.stdin.once('drain', () => process.stdin.resume())
  }
})
process.stdin.on('end', () => child.stdin.end())
child.stdin.on('error', () => undefined)
child.stdout.on('data', (data: Buffer) => {
  note('t', data)
  if (!process.stdout.write(data)) {
    child.stdout.pause()
    process.stdout.once('drain', () => child.stdout.resume())
  }
})
child.on('close', (code) => {
  process.stdout.end(() => process.exit(code ?? 1))
})
