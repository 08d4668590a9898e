/** Programs that use ssh for their own purposes: Ansible, which works, and mosh, which cannot. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sshArguments } from '../peers/openssh.ts'
import { run } from '../peers/process.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { openTerminal } from '../peers/terminal.ts'
import { type Bastion, startBastion } from './bastion.ts'

const PLAYBOOK = `
- hosts: all
  gather_facts: false
  vars: { greeting: "hello, {{ inventory_hostname }}" }
  tasks:
    - copy: { src: SOURCE/plain.txt, dest: TARGET/plain.txt, mode: "0640" }
    - template: { src: SOURCE/greeting.j2, dest: TARGET/greeting.txt }
    - command: cat TARGET/greeting.txt
      register: shown
    - assert: { that: shown.stdout == greeting }
`

describeWithPeers('Ansible', ['sshd', 'ssh', 'ansible-playbook'], () => {
  let bastion: Bastion
  beforeAll(async () => {
    bastion = await startBastion({ credential: 'password' })
  })
  afterAll(() => bastion.stop())

  test.each(['sftp', 'scp'])(
    'a playbook with copy and template, files by %s, over one kept connection',
    { timeout: 300_000 },
    async (transfer) => {
      const { home, account, broker, key } = bastion
      const source = join(home.folder, `playbook-${transfer}`)
      const target = join(account.home, transfer)
      mkdirSync(source)
      writeFileSync(join(source, 'plain.txt'), 'plain\n')
      writeFileSync(join(source, 'greeting.j2'), '{{ greeting }}\n')
      const playbook = PLAYBOOK.replaceAll('SOURCE', source).replaceAll('TARGET', target)
      writeFileSync(join(source, 'play.yml'), playbook)
      const host = [
        'srv1',
        'ansible_host=127.0.0.1',
        `ansible_port=${broker.ports.ssh}`,
        // as docs/clients.md says
        `ansible_user="ops1+${account.name}@srv1"`,
        `ansible_ssh_private_key_file=${key.path}`,
        `ansible_ssh_common_args="-F ${home.sshConfig}"`,
        'ansible_python_interpreter=/usr/bin/python3',
        `ansible_remote_tmp=${account.home}/.ansible`,
      ]
      writeFileSync(join(source, 'inventory'), `${host.join(' ')}\n`)
      const env = {
        ...home.env(),
        ANSIBLE_SSH_TRANSFER_METHOD: transfer,
        ANSIBLE_HOST_KEY_CHECKING: 'False',
        ANSIBLE_LOCAL_TEMP: join(source, 'local'),
        ANSIBLE_SSH_CONTROL_PATH_DIR: join(home.folder, 'cp'),
        ANSIBLE_NOCOLOR: '1',
        LC_ALL: 'C.UTF-8',
      }
      const make = `mkdir ${target}`
      const [ssh, login] = [findProgram('ssh'), bastion.login()]
      const options = { env: home.env(login.password) }
      expect((await run(ssh, [...sshArguments(home, login), make], options)).code).toBe(0)
      const args = ['-i', join(source, 'inventory'), join(source, 'play.yml')]
      const result = await run(findProgram('ansible-playbook'), args, { env, timeout: 300_000 })
      expect(result.stdout).toMatch(/srv1\s+: ok=4 +changed=3 +unreachable=0 +failed=0/)
      expect(result.code).toBe(0)
      expect(readFileSync(join(target, 'greeting.txt'), 'utf8')).toBe('hello, srv1\n')
      expect(readFileSync(join(target, 'plain.txt'), 'utf8')).toBe('plain\n')
    },
  )
})

describeWithPeers('mosh', ['sshd', 'ssh', 'mosh'], () => {
  let bastion: Bastion
  beforeAll(async () => {
    // without the right to run commands: mosh-server is a command
    bastion = await startBastion({ credential: 'password', subprotocols: ['SSH_SHELL'] })
  })
  afterAll(() => bastion.stop())

  test('is refused with the right that it lacks: what it does afterwards would pass by the bastion', async () => {
    const { home } = bastion
    const login = bastion.login({ identity: bastion.key.path })
    const ssh = `ssh -F ${home.sshConfig} -i ${bastion.key.path} -p ${login.port} -l ${login.user}`
    const terminal = openTerminal(findProgram('mosh'), [`--ssh=${ssh}`, '--', '127.0.0.1'], {
      env: { ...home.env(), LC_ALL: 'C.UTF-8', TERM: 'xterm' },
    })
    await terminal.expect('the right SSH_REMOTE_COMMAND is missing')
    expect(await terminal.exit()).not.toBe(0)
  })
})
