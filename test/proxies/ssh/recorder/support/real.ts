/** Runs real clients against real servers through fake-ssh.ts, and replays the session to a recorder. */
import { Buffer } from 'node:buffer'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ChannelRecorder } from '../../../../../proxies/ssh/recorder/recorder.ts'

export interface Capture {
  command: Buffer
  /** In the order of transfer. */
  pieces: { from: 'client' | 'target'; data: Buffer }[]
}

export class Workshop {
  readonly folder = mkdtempSync(join(tmpdir(), 'sallyport-capture-'))
  #count = 0

  path(name: string): string {
    return join(this.folder, name)
  }

  /** Writes a file of pseudo-random bytes, the same each time. */
  file(name: string, size: number): { path: string; size: number; sha256: string } {
    const data = Buffer.alloc(size)
    let state = size + 1
    for (let at = 0; at < size; at++) {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0
      data[at] = state >>> 16
    }
    writeFileSync(this.path(name), data)
    return { path: this.path(name), size, sha256: sha256(data) }
  }

  /** Runs a client; `run` gets the path of a program that replaces ssh. Returns a capture per connection. */
  async capture(
    run: (ssh: string) => { program: string; args: string[]; input?: string; env?: Record<string, string> },
    expectedExit = 0,
  ): Promise<Capture> {
    const log = this.path(`log-${this.#count++}`)
    const ssh = `${log}.sh`
    const fake = fileURLToPath(new URL('./fake-ssh.ts', import.meta.url))
    writeFileSync(ssh, `#!/bin/sh\nexec '${process.execPath}' '${fake}' '${log}' "$@"\n`, { mode: 0o755 })
    const { program, args, input, env } = run(ssh)
    const child = spawn(program, args, {
      cwd: this.folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: this.folder, LC_ALL: 'C.UTF-8', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: 300_000,
    })
    const said: Buffer[] = []
    child.stdout.on('data', (data: Buffer) => said.push(data))
    child.stderr.on('data', (data: Buffer) => said.push(data))
    // A program may end without reading its input.
    child.stdin.on('error', () => undefined)
    child.stdin.end(input ?? '')
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', resolve)
    })
    if (code !== expectedExit) {
      throw new Error(
        `${program} ended with ${code}, expected ${expectedExit}: ${Buffer.concat(said).toString()}`,
      )
    }
    return parseCapture(readFileSync(log))
  }

  clean(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

export function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

/** Reads the log of fake-ssh.ts and of terminal.py. */
export function parseCapture(log: Buffer): Capture {
  const capture: Capture = { command: Buffer.alloc(0), pieces: [] }
  for (let at = 0; at < log.length; ) {
    const length = log.readUInt32BE(at + 1)
    const data = log.subarray(at + 5, at + 5 + length)
    if (log[at] === 0x78) capture.command = data
    else capture.pieces.push({ from: log[at] === 0x63 ? 'client' : 'target', data })
    at += 5 + length
  }
  return capture
}

/** Replays a capture to a recorder, cut by `size`, and closes it with exit status 0. */
export function replay(capture: Capture, recorder: ChannelRecorder, size: () => number = () => 32_768): void {
  for (const { from, data } of capture.pieces) {
    for (let at = 0; at < data.length; ) {
      const piece = data.subarray(at, at + Math.max(1, size()))
      at += piece.length
      if (from === 'client') recorder.fromClient(piece)
      else recorder.fromTarget(piece, false)
    }
  }
  recorder.exit({ status: 0 })
  recorder.close()
}

/** Returns sizes from 1 to `most`, mostly small, the same for the same seed. */
export function pieceSizes(seed: number, most: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return 1 + Math.floor((state / 2 ** 32) ** 3 * most)
  }
}
