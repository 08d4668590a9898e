/** A receiver of traces over HTTP, which keeps them. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  status: { code: number }
}

export interface Collector {
  endpoint: string
  /** Status of the answers. */
  status: number
  requests(): number
  spans(): ReceivedSpan[]
  /** Returns all that came. */
  text(): string
  stop(): Promise<void>
}

export async function startCollector(): Promise<Collector> {
  const bodies: string[] = []
  let requests = 0
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    requests += 1
    if (collector.status === 200) bodies.push(body)
    response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const collector: Collector = {
    endpoint: `http://127.0.0.1:${port}/v1/traces`,
    status: 200,
    requests: () => requests,
    spans: () =>
      bodies.flatMap((body) =>
        JSON.parse(body).resourceSpans.flatMap((resource: { scopeSpans: { spans: ReceivedSpan[] }[] }) =>
          resource.scopeSpans.flatMap(({ spans }) => spans),
        ),
      ),
    text: () => bodies.join('\n'),
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
  return collector
}
