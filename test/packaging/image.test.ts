/** The container's recipe against the clone: no engine that could build it is on the machines that run these tests. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { parseConfig } from '../../src/config/load.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const recipe = readFileSync(join(ROOT, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ')

test('every file that it copies is there, and so is all that the copied programs use', () => {
  const copied = [...recipe.matchAll(/\/src\/(\S+)/g)].map(([, path]) => path!)
  expect(copied).toEqual(expect.arrayContaining(['bin/sallyport', 'bin/verify.mjs', 'bin/binding-works.cjs']))
  for (const path of copied) {
    // The build makes it.
    if (path !== 'dist') expect(existsSync(join(ROOT, path)), path).toBe(true)
  }
  for (const path of copied.filter((one) => one.endsWith('.js') || one.endsWith('.mjs'))) {
    const code = readFileSync(join(ROOT, path), 'utf8')
    for (const [, used] of code.matchAll(/from '\.\/([\w.-]+)'/g)) expect(copied).toContain(`bin/${used}`)
  }
})

test('its configuration has the data in the volume, and metrics that the network of the container reaches', () => {
  const [, edit] = /(sed .*?) config\/sallyport\.yaml/.exec(recipe) ?? []
  const text = execFileSync('/bin/sh', ['-c', `${edit} config/sallyport.yaml`], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  expect(parse(text)).toMatchObject({
    data_dir: '/var/lib/sallyport',
    listen: { metrics: { host: '::', port: 9464 }, https: { port: 443 } },
  })
  parseConfig(text, '/etc/sallyport/sallyport.yaml', { env: {}, hostname: 'box' })
})
