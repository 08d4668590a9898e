/**
 * A user who may copy files one way only can do so with every SFTP client, and nothing goes the other way.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lftp, scp, sftp, sshfs } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { pscp, psftp } from '../peers/putty.ts'
import { pythonClient } from '../peers/python.ts'
import { type Bastion, startBastion } from './bastion.ts'

let bastion: Bastion
let authorization: string
let local: string
let hostFingerprint: string
const CONTENT = 'a line of content\n'.repeat(20_000)

beforeAll(async () => {
  bastion = await startBastion()
  const [row] = await bastion.broker.must<{ id: string }[]>('GET', '/authorizations')
  authorization = row!.id
  local = join(bastion.home.folder, 'local.txt')
  writeFileSync(local, CONTENT)
  writeFileSync(remote('there.txt'), CONTENT)
  const key = join(bastion.broker.dataFolder, 'ssh', 'ssh_host_ed25519_key.pub')
  hostFingerprint = (await run('ssh-keygen', ['-l', '-f', key])).stdout.split(' ')[1] ?? ''
})
afterAll(() => bastion.stop())

const remote = (name: string) => join(bastion.account.home, name)
const login = () => bastion.login({ hostFingerprint })

interface Client {
  /** Copies `local` to the target. */
  up: (to: string) => Promise<unknown>
  /** Copies a file from the target. */
  down: (from: string, to: string) => Promise<unknown>
}

/** Copies both ways in a mounted folder; the mount may fail. */
async function mounted(work: (folder: string) => Promise<unknown>): Promise<void> {
  const mount = await sshfs(bastion.home, login(), bastion.account.home)
  try {
    await work(mount.path).catch(() => undefined)
  } finally {
    await mount.unmount()
  }
}

const CLIENTS: Record<string, Client> = {
  scp: {
    up: (to) => scp(bastion.home, login(), local, { remote: to }),
    down: (from, to) => scp(bastion.home, login(), { remote: from }, to),
  },
  'scp -rp': {
    up: (to) => scp(bastion.home, login(), local, { remote: to }, ['-rp']),
    down: (from, to) => scp(bastion.home, login(), { remote: from }, to, ['-rp']),
  },
  'scp -O': {
    up: (to) => scp(bastion.home, login(), local, { remote: to }, ['-O']),
    down: (from, to) => scp(bastion.home, login(), { remote: from }, to, ['-O']),
  },
  sftp: {
    up: (to) => sftp(bastion.home, login(), [`put ${local} ${to}`]),
    down: (from, to) => sftp(bastion.home, login(), [`get ${from} ${to}`]),
  },
  psftp: {
    up: (to) => psftp(bastion.home, login(), [`put ${local} ${to}`]),
    down: (from, to) => psftp(bastion.home, login(), [`get ${from} ${to}`]),
  },
  pscp: {
    up: (to) => pscp(bastion.home, login(), local, `:${to}`, 'sftp'),
    down: (from, to) => pscp(bastion.home, login(), `:${from}`, to, 'sftp'),
  },
  lftp: {
    up: (to) => lftp(bastion.home, login(), [`put ${local} -o ${to}`]),
    down: (from, to) => lftp(bastion.home, login(), [`get ${from} -o ${to}`]),
  },
  sshfs: {
    up: (to) => mounted((folder) => cp(local, join(folder, to.slice(bastion.account.home.length)))),
    down: (from, to) => mounted((folder) => cp(join(folder, from.slice(bastion.account.home.length)), to)),
  },
  paramiko: {
    up: (to) => pythonClient('paramiko', bastion.home, login(), [{ put: [local, to] }]),
    down: (from, to) => pythonClient('paramiko', bastion.home, login(), [{ get: [from, to] }]),
  },
  asyncssh: {
    up: (to) => pythonClient('asyncssh', bastion.home, login(), [{ put: [local, to] }]),
    down: (from, to) => pythonClient('asyncssh', bastion.home, login(), [{ get: [from, to] }]),
  },
}

/** One direction shows for each client what passes and what does not; both and none need no more than these. */
const FEW = Object.fromEntries(
  Object.entries(CLIENTS).filter(([name]) => ['scp', 'scp -O', 'sftp'].includes(name)),
)

/** The same clients with a folder, whose name is the same at both ends. */
const FOLDERS: Record<string, Client> = {
  'scp -r': {
    up: (to) => scp(bastion.home, login(), tree(), { remote: dirname(to) }, ['-r']),
    down: (from, to) => scp(bastion.home, login(), { remote: from }, dirname(to), ['-rp']),
  },
  'sftp -r': {
    up: (to) => sftp(bastion.home, login(), [`put -r ${tree()} ${to}`]),
    down: (from, to) => sftp(bastion.home, login(), [`get -r ${from} ${to}`]),
  },
  'pscp -r': {
    up: (to) => pscp(bastion.home, login(), tree(), `:${dirname(to)}`, 'sftp', ['-r']),
    down: (from, to) => pscp(bastion.home, login(), `:${from}`, dirname(to), 'sftp', ['-r']),
  },
  'psftp -r': {
    up: (to) => psftp(bastion.home, login(), [`put -r ${tree()} ${to}`]),
    down: (from, to) => psftp(bastion.home, login(), [`get -r ${from} ${to}`]),
  },
}

/** Makes a local folder that contains a folder with a file. */
function tree(): string {
  const folder = join(bastion.home.folder, 'tree')
  mkdirSync(join(folder, 'within'), { recursive: true })
  writeFileSync(join(folder, 'within', 'file.txt'), CONTENT)
  return folder
}

const contentOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)

describe.each([
  [['SSH_SCP_UP'], true, false, CLIENTS],
  [['SSH_SCP_DOWN'], false, true, CLIENTS],
  [['SSH_SCP_UP', 'SSH_SCP_DOWN'], true, true, FEW],
  [['SSH_SHELL'], false, false, FEW],
])('with %j', (subprotocols, isUp, isDown, clients) => {
  beforeAll(() => bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols }))

  test.each(Object.entries(clients))('%s', async (_, { up, down }) => {
    const there = remote('new.txt')
    const here = join(bastion.home.folder, 'back.txt')
    for (const path of [there, here]) rmSync(path, { force: true })
    const results = [await up(there).catch(String), await down(remote('there.txt'), here).catch(String)]
    const done = { up: contentOf(there) === CONTENT, down: contentOf(here) === CONTENT }
    expect(done, JSON.stringify(results)).toEqual({ up: isUp, down: isDown })
    // No part of the file either.
    if (!isUp) expect(existsSync(there)).toBe(false)
    if (!isDown) expect(contentOf(here) ?? '').toBe('')
  })
})

describe('a folder', () => {
  const rights = (subprotocols: string[]) =>
    bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols })
  const inTree = (folder: string) => contentOf(join(folder, 'within', 'file.txt'))

  test.each(Object.entries(FOLDERS))('%s', async (_, { up, down }) => {
    const there = remote('tree')
    const here = join(bastion.home.folder, 'here', 'tree')
    rmSync(there, { recursive: true, force: true })
    await rights(['SSH_SCP_UP'])
    const sent = await up(there)
    expect(inTree(there) === CONTENT, JSON.stringify(sent)).toBe(true)
    const anew = () => {
      rmSync(dirname(here), { recursive: true, force: true })
      mkdirSync(dirname(here))
    }
    anew()
    await down(there, here).catch(() => undefined)
    expect(inTree(here)).toBeUndefined()
    await rights(['SSH_SCP_DOWN'])
    anew()
    const fetched = await down(there, here)
    expect(inTree(here) === CONTENT, JSON.stringify(fetched)).toBe(true)
  })
})

test('a client that lists before it sends needs the other direction too', async () => {
  const mirror = async (...subprotocols: string[]) => {
    await bastion.broker.must('PUT', `/authorizations/${authorization}`, { subprotocols })
    return (await lftp(bastion.home, login(), [`mirror -R ${tree()} ${remote('mirrored')}`])).code
  }
  expect(await mirror('SSH_SCP_UP')).not.toBe(0)
  expect(await mirror('SSH_SCP_UP', 'SSH_SCP_DOWN')).toBe(0)
})
