/** Processor time of a program with its threads and with the programs that it has started. */
import { type ChildProcess, spawn } from 'node:child_process'
import { afterEach, expect, test } from 'vitest'
import { until } from '../until.ts'
import { between, ProcessTree } from './processor.ts'

let child: ChildProcess | undefined
afterEach(() => child?.kill('SIGKILL'))

/** A program that works for half a second when it gets a line: in its loop, a thread, or a child. */
const PROGRAM = `
  const { Worker } = require('node:worker_threads')
  const { spawn } = require('node:child_process')
  const work = 'const end = process.cpuUsage; const from = end().user; while (end().user - from < 500e3);'
  process.stdin.on('data', (line) => {
    const what = String(line).trim()
    if (what === 'loop') eval(work), console.log('done')
    if (what === 'thread') new Worker(work + 'setInterval(() => {}, 1e3); console.log("done")', { eval: true, name: 'busy' })
    if (what === 'child') spawn(process.execPath, ['-e', work]).on('exit', () => console.log('done'))
  })
  console.log('ready')`

test.each([
  ['its loop', 'loop', 'MainThread'],
  ['a thread of its own', 'thread', 'busy'],
  ['a child that has ended', 'child', 'ended'],
])('what a program works in %s is counted there and in all', async (_, line, where) => {
  child = spawn(process.execPath, ['-e', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] })
  let said = ''
  child.stdout?.on('data', (data) => {
    said += data
  })
  const says = (word: string) => until(word, () => said.includes(word) || undefined, 60_000)
  await says('ready')
  const tree = new ProcessTree(child.pid ?? 0)
  const before = tree.spent()
  child.stdin?.write(`${line}\n`)
  await says('done')
  await tree.quiet()
  const { all, threads } = between(before, tree.spent())
  expect(threads[where]).toBeGreaterThan(0.4)
  expect(all).toBeGreaterThanOrEqual(threads[where]! - 0.01)
  const sum = Object.values(threads).reduce((total, seconds) => total + seconds, 0)
  expect(Math.abs(all - sum)).toBeLessThan(0.2)
})
