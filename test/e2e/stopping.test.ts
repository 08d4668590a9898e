/** A broker that is stopped in order ends in order, whatever its receivers of events do. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startBroker } from '../peers/broker.ts'

let folder: string
const held: (Socket | Server)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-stopping-'))
})
afterEach(() => {
  for (const one of held.splice(0)) one.close()
  rmSync(folder, { recursive: true, force: true })
})

async function udpPort(isOpen: boolean): Promise<number> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  if (isOpen) held.push(socket)
  else socket.close()
  return port
}
/** Accepts connections and never reads. */
async function mutePort(): Promise<number> {
  const server = createServer((socket) =>
    socket
      .pause()
      .unref()
      .on('error', () => {}),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  held.push(server)
  return (server.address() as AddressInfo).port
}

test.each<[string, 'udp' | 'tcp', () => Promise<number>]>([
  ['nobody listens over UDP', 'udp', () => udpPort(false)],
  ['somebody listens over UDP', 'udp', () => udpPort(true)],
  ['a receiver over TCP never reads', 'tcp', mutePort],
])('when %s', { timeout: 300_000 }, async (_, transport, port) => {
  const dataFolder = join(folder, 'data')
  const syslog = [{ host: '127.0.0.1', port: await port(), transport }]
  const broker = await startBroker({ dataFolder, config: { syslog } })
  const pidFile = join(dataFolder, 'sallyport.pid')
  expect(existsSync(pidFile)).toBe(true)
  process.kill(broker.pid, 'SIGTERM')
  expect(await broker.ended, broker.log()).toBe(0)
  expect(existsSync(pidFile)).toBe(false)
  const positions = readdirSync(join(dataFolder, 'sinks'))
  expect(positions.length).toBeGreaterThan(0)
  for (const name of positions) JSON.parse(readFileSync(join(dataFolder, 'sinks', name), 'utf8'))
  await broker.stop()
})
