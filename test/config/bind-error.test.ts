import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { explainBindError, portHolder } from '../../src/config/bind-error.ts'
import { portFault } from '../../src/config/ports.ts'

async function bindError(host: string, port: number): Promise<NodeJS.ErrnoException> {
  const server = createServer()
  server.listen(port, host)
  return (await once(server, 'error'))[0] as NodeJS.ErrnoException
}

test('a port in use names the program that holds it', async () => {
  const child = spawn(
    process.execPath,
    [
      '-e',
      "require('net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })",
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  try {
    const port = Number(String((await once(child.stdout, 'data'))[0]))
    const error = await bindError('127.0.0.1', port)
    const text = explainBindError(error, 'ssh', { host: '127.0.0.1', port })
    expect(text).toContain(`cannot listen for ssh on 127.0.0.1:${port}: the port is held by `)
    expect(text).toContain(`(process ${child.pid})`)
    expect(text).toContain('listen.ssh.port')
  } finally {
    child.kill()
  }
})

test('a port that nobody holds has no holder', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  expect(portHolder(port)).toContain(`(process ${process.pid})`)
  server.close()
  await once(server, 'close')
  expect(portHolder(port)).toBeUndefined()
})

test('the port of the SNMP agent is one of UDP', async () => {
  const held = createSocket('udp4')
  held.bind(0, '127.0.0.1')
  await once(held, 'listening')
  const address = { host: '127.0.0.1', port: held.address().port }
  expect(await portFault('snmp', address)).toContain(
    `(process ${process.pid}); stop it, or set another port at snmp.agent.port`,
  )
  held.close()
  await once(held, 'close')
  expect(await portFault('snmp', address)).toBeUndefined()
})

test('a privileged port names the capability and another port', () => {
  const error = Object.assign(new Error('listen EACCES'), { code: 'EACCES' })
  const text = explainBindError(error, 'ssh', { host: '::', port: 22 })
  expect(text).toContain('cannot listen for ssh on [::]:22')
  expect(text).toContain('CAP_NET_BIND_SERVICE')
  expect(text).toContain('setcap')
  expect(text).toContain('listen.ssh.port')
})

test('an address of another machine is said to be one', async () => {
  const error = await bindError('192.0.2.1', 0)
  expect(explainBindError(error, 'https', { host: '192.0.2.1', port: 443 })).toContain('listen.https.host')
})
