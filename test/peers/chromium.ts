/** A real browser, controlled over its DevTools protocol. It notes a page's actions, whatever caused them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { startDaemon } from './process.ts'
import { findProgram } from './program.ts'

const WAIT_MS = 30_000
/** The hooks that notice scripts of a page. `attack()` exists for scripts that should never run. */
const HOOKS = `
  for (const name of ['attack', 'open', 'alert', 'confirm', 'prompt', 'print'])
    window[name] = (...words) => caught([name, ...words].join(' '))
  document.execCommand = (name) => caught('execCommand ' + name)
  const clipboard = {}
  for (const name of ['writeText', 'write', 'readText', 'read']) clipboard[name] = async () => caught('clipboard ' + name)
  Object.defineProperty(navigator, 'clipboard', { value: clipboard })
`

export interface Page {
  /** Returns an expression's value in the page. */
  evaluate<T>(expression: string): Promise<T>
  /** Clicks the middle of the element that the expression returns. */
  click(element: string): Promise<void>
  key(key: string): Promise<void>
  /** Actions of the page's scripts at the hooks: `attack script`, `open https://…`. */
  did: string[]
  /** Requested URLs, the page itself first. */
  requests: string[]
  /** URLs that it navigated to. */
  navigations: string[]
  /** Names of the files that the browser was made to save. */
  downloads: string[]
}

export interface Browser {
  /** Opens a page in its own tab, and waits until it is loaded, or its download has begun. */
  open(url: string, headers?: Record<string, string>): Promise<Page>
  /** Returns the tabs and windows that only a page has opened. */
  strangers(): string[]
  stop(): Promise<void>
}

interface Message {
  id?: number
  sessionId?: string
  method?: string
  params: Fields
  result?: Fields
  error?: { message: string }
}

// biome-ignore lint/suspicious/noExplicitAny: the protocol's hundreds of types are not described here
type Fields = Record<string, any>
type Listener = (method: string, params: Fields) => void

export async function startChromium(): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-chromium-'))
  const flags = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--ignore-certificate-errors',
  ]
  // No request leaves this machine; it is noted before.
  const network = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1'
  const args = [...flags, network, '--remote-debugging-port=0', `--user-data-dir=${folder}`, 'about:blank']
  const daemon = await startDaemon(findProgram('chromium'), args, /DevTools listening on ws:\S+/)
  const socket = new WebSocket(/DevTools listening on (ws:\S+)/.exec(daemon.log())?.[1] ?? '')
  await new Promise<void>((resolve, reject) => {
    socket.once('open', () => resolve())
    socket.once('error', reject)
  })
  const waiting = new Map<number, (message: Message) => void>()
  const listeners = new Map<string, Listener>()
  const own = new Set<string>()
  const targets = new Map<string, string>()
  let calls = 0
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as Message
    if (message.id !== undefined) waiting.get(message.id)?.(message)
    else listeners.get(message.sessionId ?? '')?.(message.method ?? '', message.params)
  })
  const call = async (method: string, params: object = {}, sessionId?: string): Promise<Fields> => {
    const id = ++calls
    const answer = new Promise<Message>((resolve) => waiting.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params, ...(sessionId !== undefined && { sessionId }) }))
    const late = sleep(WAIT_MS, undefined, { ref: false }).then(() => {
      throw new Error(`chromium did not answer ${method}`)
    })
    const { result, error } = await Promise.race([answer, late])
    waiting.delete(id)
    if (error) throw new Error(`${method}: ${error.message}`)
    return result ?? {}
  }
  listeners.set('', (method, { targetInfo }) => {
    if (method === 'Target.targetCreated' && targetInfo.type === 'page')
      targets.set(targetInfo.targetId, targetInfo.url)
  })
  await call('Target.setDiscoverTargets', { discover: true })
  // The tab that the browser opened at its start.
  for (const target of targets.keys()) own.add(target)

  const open = async (url: string, headers: Record<string, string> = {}): Promise<Page> => {
    const { targetId } = await call('Target.createTarget', { url: 'about:blank' })
    own.add(targetId)
    const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true })
    const requests: string[] = []
    const navigations: string[] = []
    const downloads: string[] = []
    const did: string[] = []
    let isLoaded = false
    listeners.set(sessionId, (method, params) => {
      if (method === 'Network.requestWillBeSent') requests.push(params['request'].url)
      if (method === 'Page.frameNavigated') navigations.push(params['frame'].url)
      if (method === 'Page.downloadWillBegin') downloads.push(params['suggestedFilename'])
      if (method === 'Page.javascriptDialogOpening') did.push(`dialog ${params['message']}`)
      if (method === 'Runtime.bindingCalled') did.push(params['payload'])
      if (method === 'Page.loadEventFired') isLoaded = true
    })
    const here = (method: string, params: object = {}) => call(method, params, sessionId)
    for (const domain of ['Page', 'Runtime', 'Network']) await here(`${domain}.enable`)
    await here('Runtime.addBinding', { name: 'caught' })
    await here('Page.addScriptToEvaluateOnNewDocument', { source: HOOKS })
    await here('Network.setExtraHTTPHeaders', { headers })
    await call('Browser.setDownloadBehavior', { behavior: 'deny' })
    isLoaded = false
    navigations.length = 0
    await here('Page.navigate', { url })
    for (const end = Date.now() + WAIT_MS; !isLoaded && downloads.length === 0; await sleep(20)) {
      if (Date.now() > end) throw new Error(`chromium did not load ${url}`)
    }
    const evaluate = async <T>(expression: string): Promise<T> => {
      const { result, exceptionDetails } = await here('Runtime.evaluate', {
        expression,
        returnByValue: true,
        awaitPromise: true,
      })
      if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails))
      return result.value as T
    }
    const mouse = { button: 'left', clickCount: 1 }
    return {
      evaluate,
      async click(element) {
        const { x, y } = await evaluate<{ x: number; y: number }>(`(() => {
          const element = ${element}
          element.scrollIntoView({ block: 'center' })
          const { x, y, width, height } = element.getBoundingClientRect()
          return { x: x + width / 2, y: y + height / 2 }
        })()`)
        await here('Input.dispatchMouseEvent', { type: 'mouseMoved', x, y })
        for (const type of ['mousePressed', 'mouseReleased'])
          await here('Input.dispatchMouseEvent', { type, x, y, ...mouse })
      },
      async key(key) {
        for (const type of ['keyDown', 'keyUp']) await here('Input.dispatchKeyEvent', { type, key })
      },
      did,
      requests,
      navigations,
      downloads,
    }
  }
  return {
    open,
    strangers: () => [...targets].filter(([target]) => !own.has(target)).map(([, url]) => url),
    stop: async () => {
      socket.close()
      await daemon.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
