/** Requests for a WebSocket that get an ordinary answer. */
import { once } from 'node:events'
import { connect } from 'node:tls'
import { expect, it, vi } from 'vitest'
import { startHarness } from './harness.ts'

it.each([
  ['/api/sessions/01K9T5RZ8Q4W6X2C3V1B0N7M50/live', '401', ''],
  ['/api/version', '200', 'what nobody reads'],
])('leave no connection behind: GET %s', async (path, status, more) => {
  const h = await startHarness()
  await h.api.listen({ port: 0, host: '127.0.0.1' })
  const { port } = h.api.server.address() as { port: number }
  // A client that does not close its side by itself.
  const options = { port, host: '127.0.0.1', ca: h.cert, allowHalfOpen: true }
  const client = connect(options)
  let answer = ''
  client.setEncoding('utf8').on('data', (text) => {
    answer += text
  })
  client.on('error', () => undefined)
  const gone = new Promise<void>((resolve) => {
    h.api.server.on('secureConnection', (socket) => socket.once('close', resolve))
  })
  await once(client, 'secureConnect')
  client.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n${more}`,
  )
  await gone
  await vi.waitFor(() => expect(answer).toContain(`HTTP/1.1 ${status} `))
  await h.close()
  client.destroy()
})
