/** The memory of a process that withholds it, as another process of its user finds it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'

const MODULE = JSON.stringify(join(import.meta.dirname, '../../src/host/process-memory.ts'))
const isRoot = process.getuid!() === 0
const user = isRoot ? { uid: 65_534, gid: 65_534 } : {}
const running: ChildProcess[] = []
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
})

function run(code: string) {
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', code]
  const child = spawn(process.execPath, args, { ...user, cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] })
  running.push(child)
  return child
}

async function said(code: string): Promise<{ pid: number; text: string }> {
  const child = run(code)
  const [bytes] = (await once(child.stdout, 'data')) as [Buffer]
  return { pid: child.pid!, text: String(bytes) }
}

test.each([
  ['is open to its user by itself', 'undefined', 'undefined', 'done done'],
  ['is closed to its user', 'withholdFromOtherProcesses()', 'true', 'EACCES EACCES'],
])('%s', async (_, call, result, outcome) => {
  const holder = await said(`import { withholdFromOtherProcesses } from ${MODULE}
process.stdout.write(String(${call}))
setInterval(() => {}, 60_000)`)
  expect(holder.text).toBe(result)
  const reader = await said(`import { openSync } from 'node:fs'
const files = ['/proc/${holder.pid}/mem', '/proc/${holder.pid}/environ']
const found = files.map((file) => { try { openSync(file); return 'done' } catch (error) { return error.code } })
process.stdout.write(found.join(' '))`)
  expect(reader.text).toBe(outcome)
})
