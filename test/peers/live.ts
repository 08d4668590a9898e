/** A watcher of a session: a WebSocket client, and the screen that its messages draw. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import xterm from '@xterm/headless'
import { WebSocket } from 'ws'
import { ADMIN_PASSWORD, type Broker, callApi } from './broker.ts'

export interface LiveMessage {
  type: string
  time?: number
  channel?: number
  base64?: string
  data?: Record<string, unknown>
  gap?: boolean
  channels?: {
    channel: number
    data: Record<string, unknown>
    columns?: number
    rows?: number
    base64?: string
    width?: number
    height?: number
    png?: string
  }[]
  width?: number
  height?: number
  rectangles?: { x: number; y: number; width: number; height: number; png: string }[]
  result?: string
  reason?: string
  error?: string
  user?: string
  session?: string
  target?: string
}

export interface LiveWatcher {
  socket: WebSocket
  messages: LiveMessage[]
  /** Times of arrival, in milliseconds. */
  times: number[]
  /** Returns the lines of the terminals' screen. */
  screen(): Promise<string>
  /** Returns the output after the last keyframe. */
  output(): Buffer
  closed: Promise<{ code: number; reason: string }>
  close(): Promise<void>
}

export interface LiveOptions {
  headers?: Record<string, string>
}

/** Rejects with the HTTP status and body if the connection is refused. */
export async function watchLive(
  broker: Pick<Broker, 'ports' | 'dataFolder'>,
  session: string,
  { headers = {} }: LiveOptions = {},
): Promise<LiveWatcher> {
  const url = `wss://127.0.0.1:${broker.ports.https}/api/v3.12/sessions/${session}/live`
  const socket = new WebSocket(url, {
    ca: readFileSync(join(broker.dataFolder, 'tls', 'cert.pem')),
    // The self-signed certificate names the host, not this address.
    checkServerIdentity: () => undefined as unknown as boolean,
    headers,
    perMessageDeflate: false,
  })
  const messages: LiveMessage[] = []
  const times: number[] = []
  socket.on('message', (data) => {
    messages.push(JSON.parse(String(data)) as LiveMessage)
    times.push(performance.now())
  })
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: String(reason) }))
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve())
    socket.once('error', reject)
    socket.once('unexpected-response', (_request, response) => {
      let body = ''
      response.on('data', (data) => {
        body += String(data)
      })
      response.on('end', () => reject(new Error(`${response.statusCode} ${body}`)))
    })
  })
  const sinceKeyframe = (): LiveMessage[] =>
    messages.slice(messages.findLastIndex(({ type }) => type === 'keyframe'))
  const output = (): Buffer =>
    Buffer.concat(
      sinceKeyframe()
        .filter(({ type }) => type === 'output')
        .map(({ base64 }) => Buffer.from(base64 ?? '', 'base64')),
    )
  return {
    socket,
    messages,
    times,
    output,
    async screen() {
      const drawn = sinceKeyframe()[0]?.channels?.find(({ columns }) => columns !== undefined)
      const terminal = new xterm.Terminal({
        cols: drawn?.columns ?? 80,
        rows: drawn?.rows ?? 24,
        scrollback: 0,
        allowProposedApi: true,
      })
      const bytes = Buffer.concat([Buffer.from(drawn?.base64 ?? '', 'base64'), output()])
      await new Promise<void>((resolve) => terminal.write(bytes, resolve))
      const { active } = terminal.buffer
      return Array.from({ length: terminal.rows }, (_, row) =>
        active.getLine(row)!.translateToString(true),
      ).join('\n')
    },
    closed,
    async close() {
      socket.close()
      await closed
    },
  }
}

/** Watches as the administrator, by a separate sign-in. */
export async function watchAsAdmin(broker: Broker, session: string): Promise<LiveWatcher> {
  const certificate = readFileSync(join(broker.dataFolder, 'tls', 'cert.pem'))
  const who = { user: 'admin', password: ADMIN_PASSWORD }
  const answer = await callApi(broker.ports.https, certificate, 'POST', '/session', who)
  const [cookie = ''] = [answer.headers['set-cookie'] ?? []].flat()
  return await watchLive(broker, session, { headers: { cookie: cookie.split(';')[0]! } })
}
