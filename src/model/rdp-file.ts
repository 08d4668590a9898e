/** An .rdp file, which Windows' client and others connect by: one setting per line, `NAME:TYPE:VALUE`. */
import { isIPv6 } from 'node:net'
import { RDP_TICKET_TOKEN } from './rdp-ticket.ts'
import type { Right } from './rights.ts'

export interface RdpFile {
  /** The bastion's host, as clients name it. */
  host: string
  port: number
  /** The login string; the user types the password. */
  login: string
  /** The session's rights: the features that the client offers. */
  rights: readonly Right[]
}

/** Formats a file for a client that signs in with a ticket. Lines end with CR LF. */
export function formatRdpFile({ host, port, login, rights }: RdpFile): string {
  const flag = (...needed: Right[]) => (needed.some((right) => rights.includes(right)) ? 1 : 0)
  const lines = [
    `full address:s:${isIPv6(host) ? `[${host}]` : host}:${port}`,
    `username:s:${login}`,
    'prompt for credentials:i:0',
    'enablecredsspsupport:i:1',
    `loadbalanceinfo:s:${RDP_TICKET_TOKEN}`,
    // warn if the bastion's certificate is not trusted
    'authentication level:i:2',
    // a ticket works once
    'autoreconnection enabled:i:0',
    'gatewayusagemethod:i:0',
    'session bpp:i:32',
    // its measurements are not relayed; FreeRDP treats 0 for both as an error
    'networkautodetect:i:0',
    'bandwidthautodetect:i:1',
    'use multimon:i:0',
    'dynamic resolution:i:1',
    `redirectclipboard:i:${flag('RDP_CLIPBOARD_UP', 'RDP_CLIPBOARD_DOWN', 'RDP_CLIPBOARD_FILE')}`,
    `drivestoredirect:s:${flag('RDP_DRIVE') === 1 ? '*' : ''}`,
    `redirectprinters:i:${flag('RDP_PRINTER')}`,
    `redirectcomports:i:${flag('RDP_COM_PORT')}`,
    `redirectsmartcards:i:${flag('RDP_SMARTCARD')}`,
    // 0: play here, 2: do not play
    `audiomode:i:${flag('RDP_AUDIO_OUTPUT') === 1 ? 0 : 2}`,
    `audiocapturemode:i:${flag('RDP_AUDIO_INPUT')}`,
    'devicestoredirect:s:',
    'camerastoredirect:s:',
  ]
  return lines.map((line) => `${line}\r\n`).join('')
}
