/** Descriptions of the rights of a profile, as an administrator reads them. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { AMOUNTS } from '../../src/model/profiles.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

const amountsOf = async (profile: string) =>
  (await h.call('GET', `/profiles/${profile}`, { cookie })).body.amounts_to

it.each([
  ['product_administrator', [...AMOUNTS]],
  ['operator', ['any_target', 'users_within_profile', 'any_running_session', 'rules_of_sessions']],
  ['auditor', ['all_recorded']],
  ['approver', []],
  ['user', []],
])('is shown with the profile %s', async (profile, amounts) => {
  expect(await amountsOf(profile)).toEqual(amounts)
})

it.each([
  ['user_groups', 'any_target'],
  ['target_groups', 'any_target'],
  ['authorizations', 'any_target'],
  ['devices', 'any_target'],
  ['users', 'users_within_profile'],
])('%s: modify alone comes to %s, and to view it comes to nothing', async (feature, amount) => {
  for (const level of ['modify', 'view']) {
    const body = { profile_name: `${feature}-${level}`, rights: { [feature]: level } }
    const made = await h.call('POST', '/profiles', { cookie, body })
    expect(made.status).toBe(201)
    if (level === 'modify') expect(made.body.amounts_to).toContain(amount)
    else expect(made.body.amounts_to).toEqual([])
  }
})

it('is nothing that a body can set', async () => {
  const body = { profile_name: 'modest', amounts_to: [] }
  expect((await h.call('POST', '/profiles', { cookie, body })).body.error).toBe('unknown_field')
})

it('stands in docs/api.md, with how', () => {
  const docs = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  const rows = [...docs.matchAll(/^\| `(\w+)` \| `[a-z_`, or]+: (?:view|modify|execute) \| \w/gm)]
  expect(rows.map(([, amount]) => amount)).toEqual([...AMOUNTS])
})
