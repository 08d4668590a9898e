/** Requests a one-time ticket from the API. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Broker, callApi } from '../peers/broker.ts'

export interface Ticket {
  user: string
  password: string
  rdp_file?: string
}

/** Returns a ticket for viewers on this machine. */
export async function ticketFor(
  { ports, dataFolder }: Pick<Broker, 'ports' | 'dataFolder'>,
  { user, password }: { user: string; password: string },
  target: string,
  protocol: 'VNC' | 'RDP' = 'VNC',
): Promise<Ticket> {
  const certificate = readFileSync(join(dataFolder, 'tls', 'cert.pem'))
  const signIn = await callApi(ports.https, certificate, 'POST', '/session', { user, password })
  const cookie = [signIn.headers['set-cookie'] ?? []].flat()[0]?.split(';')[0] ?? ''
  const path = `/targets/${encodeURIComponent(target)}/ticket`
  const made = await callApi<Ticket>(ports.https, certificate, 'POST', path, { protocol }, { cookie })
  if (made.status !== 201) throw new Error(`no ticket for ${target}: ${JSON.stringify(made.body)}`)
  return made.body
}
