/**
 * noVNC in a page of a real browser: it reaches a plain RFB listener through a websocket that this process
 * pipes.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { join, normalize } from 'node:path'
import { createWebSocketStream, WebSocketServer } from 'ws'
import type { Browser, Page } from '../chromium.ts'
import type { Picture } from '../screen.ts'

const PACKAGE = join(import.meta.dirname, '../../../node_modules/@novnc/novnc')
const PAGE = `<!doctype html><title>noVNC</title><div id="screen" style="width:1024px;height:768px"></div>
<script type="module">
import RFB from '/core/rfb.js'
window.RFB = RFB
</script>`

export interface NoVncOptions {
  /** Port on 127.0.0.1. */
  port: number
  user?: string
  password?: string
  /** Accepted security types, with VeNCrypt's; absent: all that it has. */
  types?: readonly number[]
}

export interface NoVnc {
  page: Page
  /**
   * Returns its events so far: `connect`, `disconnect`, `securityfailure REASON`, `credentialsrequired
   * TYPES`, `desktopname NAME`.
   */
  told(): Promise<string[]>
  /** Returns the picture on its canvas. */
  picture(): Promise<Picture>
  disconnect(): Promise<void>
}

export interface NoVncSite {
  /** Opens a viewer in its own tab, without the lossy encodings. */
  open(browser: Browser, options: NoVncOptions): Promise<NoVnc>
  stop(): void
}

/** Starts a web server with noVNC's files, and the pipe to any loopback port. */
export async function startNoVncSite(): Promise<NoVncSite> {
  const server = createServer((request, response) => {
    const path = normalize(request.url ?? '/')
    if (path === '/') {
      response.setHeader('content-type', 'text/html').end(PAGE)
      return
    }
    try {
      const content = readFileSync(join(PACKAGE, path))
      response.setHeader('content-type', 'text/javascript').end(content)
    } catch {
      response.writeHead(404).end()
    }
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, request) => {
    const stream = createWebSocketStream(socket)
    const target = connect(Number(request.url?.slice(1)), '127.0.0.1')
    stream.on('error', () => target.destroy())
    target.on('error', () => stream.destroy())
    target.on('close', () => socket.close())
    stream.pipe(target).pipe(stream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port: own } = server.address() as AddressInfo
  return {
    open: async (browser, options) => await openNoVnc(browser, own, options),
    stop: () => {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      server.closeAllConnections()
      server.close()
    },
  }
}

async function openNoVnc(
  browser: Browser,
  own: number,
  { port, user, password, types }: NoVncOptions,
): Promise<NoVnc> {
  const page = await browser.open(`http://127.0.0.1:${own}/`)
  const credentials = JSON.stringify({ username: user, password })
  await page.evaluate(`(async () => {
    while (!window.RFB) await new Promise((resolve) => setTimeout(resolve, 20))
    const types = ${JSON.stringify(types ?? null)}
    if (types) RFB.prototype._isSupportedSecurityType = (type) => types.includes(type)
    const { clientEncodings } = RFB.messages
    const lossy = [7, 21]
    RFB.messages.clientEncodings = (sock, list) => clientEncodings(sock, list.filter((one) => !lossy.includes(one)))
    window.told = []
    window.rfb = new RFB(document.getElementById('screen'), 'ws://127.0.0.1:${own}/${port}', {
      credentials: ${credentials}, shared: true,
    })
    const details = { securityfailure: 'reason', credentialsrequired: 'types', desktopname: 'name' }
    for (const name of ['connect', 'disconnect', ...Object.keys(details)])
      rfb.addEventListener(name, ({ detail }) => told.push([name, detail?.[details[name]] ?? ''].join(' ').trim()))
  })()`)
  return {
    page,
    told: () => page.evaluate<string[]>('told'),
    picture: async () => {
      const { width, height, rgba } = await page.evaluate<{
        width: number
        height: number
        rgba: string
      }>(`(() => {
        const canvas = document.querySelector('#screen canvas')
        const { width, height } = canvas
        const { data } = canvas.getContext('2d').getImageData(0, 0, width, height)
        let text = ''
        for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192))
        return { width, height, rgba: btoa(text) }
      })()`)
      const bytes = Buffer.from(rgba, 'base64')
      return { width, height, rgb: Buffer.from(bytes.filter((_, at) => at % 4 !== 3)) }
    },
    disconnect: () => page.evaluate('rfb.disconnect()'),
  }
}
