/** Requests to the API that no ordinary client sends, and their raw responses. */
import { readFileSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import type { Broker, BrokerPorts } from '../peers/broker.ts'

/** The API of a broker, or of its parts alone. */
export interface Listening extends Pick<Broker, 'dataFolder'> {
  ports: Pick<BrokerPorts, 'https'>
}

export interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

/** Sends path and body unchanged; a body is JSON unless the headers differ. */
export async function sendAsIs(
  broker: Listening,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Answer> {
  const response = await responseTo(broker, method, path, headers, body)
  const parts: Buffer[] = []
  for await (const data of response) parts.push(data)
  const { statusCode = 0 } = response
  return { status: statusCode, headers: response.headers, body: Buffer.concat(parts).toString() }
}

/** Reads a response without storing it: returns status and bytes. */
export async function weighed(
  broker: Broker,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; size: number }> {
  const response = await responseTo(broker, 'GET', path, headers)
  let size = 0
  for await (const data of response) size += (data as Buffer).length
  return { status: response.statusCode ?? 0, size }
}

function responseTo(
  broker: Listening,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: broker.ports.https,
        path,
        method,
        ca: readFileSync(join(broker.dataFolder, 'tls', 'cert.pem')),
        // The self-signed certificate names the host, not this address.
        checkServerIdentity: () => undefined,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      },
      resolve,
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Signs in; returns the cookie. */
export async function signInAs(broker: Listening, user: string, password: string): Promise<string> {
  const answer = await sendAsIs(broker, 'POST', '/api/session', {}, JSON.stringify({ user, password }))
  if (answer.status !== 200) throw new Error(`${user} cannot sign in: ${answer.body}`)
  return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? ''
}
