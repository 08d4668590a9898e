/** What Windows' client and others read to connect by RDP (an .rdp file): one setting a line, `NAME:TYPE:VALUE`. */
import { isIPv6 } from 'node:net'
import { RDP_TICKET_TOKEN } from './rdp-ticket.ts'
import type { Right } from './rights.ts'

export interface RdpFile {
  /** Of the bastion, as clients name it. */
  host: string
  port: number
  /** The login string; whoever opens the file types the password. */
  login: string
  /** Of the session: what the client offers from its side. */
  rights: readonly Right[]
}

/** For a client that signs in with a ticket. Lines end with CR LF. */
export function formatRdpFile({ host, port, login, rights }: RdpFile): string {
  const flag = (...needed: Right[]) => (needed.some((right) => rights.includes(right)) ? 1 : 0)
  const lines = [
    `full address:s:${isIPv6(host) ? `[${host}]` : host}:${port}`,
    `username:s:${login}`,
    'prompt for credentials:i:0',
    'enablecredsspsupport:i:1',
    `loadbalanceinfo:s:${RDP_TICKET_TOKEN}`,
    // warn where the bastion's certificate is not trusted
    'authentication level:i:2',
    // a ticket is good once
    'autoreconnection enabled:i:0',
    'gatewayusagemethod:i:0',
    'session bpp:i:32',
    // what it would measure by is not relayed; FreeRDP takes 0 for both as a mistake
    'networkautodetect:i:0',
    'bandwidthautodetect:i:1',
    'use multimon:i:0',
    'dynamic resolution:i:1',
    `redirectclipboard:i:${flag('RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN', 'RDP_CLIPBOARD_FILE')}`,
    `drivestoredirect:s:${flag('RDP_DRIVE') === 1 ? '*' : ''}`,
    `redirectprinters:i:${flag('RDP_PRINTER')}`,
    `redirectcomports:i:${flag('RDP_COM_PORT')}`,
    `redirectsmartcards:i:${flag('RDP_SMARTCARD')}`,
    // 0: here, 2: nowhere
    `audiomode:i:${flag('RDP_AUDIO_OUTPUT') === 1 ? 0 : 2}`,
    `audiocapturemode:i:${flag('RDP_AUDIO_INPUT')}`,
    'devicestoredirect:s:',
    'camerastoredirect:s:',
  ]
  return lines.map((line) => `${line}\r\n`).join('')
}
