/** Every message of the connection layer × every set of rights: only granted messages are forwarded. */
import { expect, test } from 'vitest'
import { type Asking, tableOf } from '../../../../proxies/ssh/policy/decisions.ts'
import { RIGHTS } from '../../../../src/model/rights.ts'
import { newWorld } from '../relay-world.ts'
import { CASES, isGranted, POLICY } from './decision-cases.ts'

/** All sets of the rights in the cases, 2^11. */
const ASKED = RIGHTS.filter((right) => /^(SSH|SFTP)_/.test(right))
const SETS = Array.from({ length: 2 ** ASKED.length }, (_, bits) =>
  ASKED.filter((_right, n) => bits & (1 << n)),
)

test.each(CASES.map((one) => [one.title, one] as const))('%s', async (_, { needs, passes }) => {
  for (const rights of SETS) {
    const world = newWorld(rights, POLICY)
    const expected = isGranted(needs, rights)
    const passed = await passes(world)
    world.end()
    if (passed !== expected) expect({ rights, passed }).toEqual({ rights, passed: expected })
  }
})

test('each entry of the table is tried', () => {
  const tried = CASES.map(({ title }) => title).join('\n')
  const other: Record<string, string> = {
    exec: 'a command',
    shell: 'a shell',
    subsystem: 'another subsystem',
    env: 'LANG',
    'pty-req': 'a terminal',
    'auth-agent-req@openssh.com': 'auth-agent-req',
    'forwarded-streamlocal@openssh.com': 'forwarded-streamlocal',
    'auth-agent@openssh.com': 'auth-agent',
  }
  /** Effective only while a program runs, whose right was checked. */
  const idle = [
    'window-change',
    'signal',
    'break',
    'xon-xoff',
    'eow@openssh.com',
    'exit-signal',
    'simple@putty.projects.tartarus.org',
  ]
  for (const peer of ['client', 'target'] as const) {
    for (const asking of Object.keys(tableOf(peer)) as Asking[]) {
      for (const name of tableOf(peer)[asking].keys()) {
        if (idle.includes(name) || (peer === 'target' && name === 'exit-status')) continue
        expect(tried).toContain(other[name] ?? name)
      }
    }
  }
})
