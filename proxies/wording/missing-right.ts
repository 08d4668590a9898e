/** The text for a user without a right. */
import type { Right } from '../../src/model/rights.ts'

const MEANING: Record<Right, string> = {
  SSH_SHELL: 'open a shell',
  SSH_REMOTE_COMMAND: 'run commands',
  SSH_SCP_UP: 'copy files to it with scp',
  SSH_SCP_DOWN: 'copy files from it with scp',
  SFTP_SESSION: 'use SFTP',
  SSH_X11: 'show windows of programs that run',
  SSH_DIRECT_TCPIP: 'forward connections',
  SSH_REVERSE_TCPIP: 'listen for connections',
  SSH_DIRECT_UNIXSOCK: 'connect to Unix sockets',
  SSH_REVERSE_UNIXSOCK: 'listen on Unix sockets',
  SSH_AUTH_AGENT: 'use an agent',
  TELNET: 'open a Telnet session',
  RLOGIN: 'open an rlogin session',
  VNC: 'open a VNC session',
  VNC_CLIPBOARD_UP: 'paste what is on your clipboard',
  VNC_CLIPBOARD_DOWN: 'copy to your clipboard',
  RDP: 'open an RDP session',
  RDP_CLIPBOARD_UP: 'paste what is on your clipboard',
  RDP_CLIPBOARD_DOWN: 'copy to your clipboard',
  RDP_CLIPBOARD_FILE: 'copy files by the clipboard',
  RDP_DRIVE: 'use your drives',
  RDP_PRINTER: 'print on your printers',
  RDP_COM_PORT: 'use your serial ports',
  RDP_SMARTCARD: 'use your smart cards',
  RDP_AUDIO_OUTPUT: 'hear sound',
  RDP_AUDIO_INPUT: 'use your microphone',
}

/** Returns the line for a user that lacks this right. */
export function missingRight(right: Right, device: string): string {
  return `you may not ${MEANING[right]} on ${device}: the right ${right} is missing`
}
