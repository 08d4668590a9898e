/**
 * The type-specific data of forwarding: channels and global requests of RFC 4254 section 7, OpenSSH's for
 * Unix sockets (PROTOCOL 2.4), X11 (RFC 4254 6.3) and agents. Parsers throw MalformedError for malformed
 * messages. `addressFlaw` and `pathFlaw` report impossible names, which are refused without a breach.
 */
import { Buffer } from 'node:buffer'
import { displayText, latin1 } from '../../bytes/text.ts'
import { Reader } from './reader.ts'
import { Writer } from './writer.ts'

/** A network address. The host has one character for each byte received. */
export interface Address {
  host: string
  port: number
}

/** The destination or listening address of a forwarded connection, and its originator. */
export interface Connection {
  to: Address
  from: Address
}

/** DNS names have at most 253 characters, addresses fewer. */
const MAX_HOST = 255
/** sun_path has at most 108 bytes on Linux, 104 on BSDs; this is a bound, not their rule. */
const MAX_PATH = 1024
const MAX_PORT = 65_535

/** Hosts are names or addresses: printable ASCII without blanks. */
const HOST = /^[\x21-\x7e]+$/
/** Bytes, one character each: no control characters. */
const PATH = /^[\x20-\x7e\x80-\xff]+$/

/** string host, uint32 port, string originator address, uint32 originator port (RFC 4254 7.2). */
export function parseConnection(data: Uint8Array): Connection {
  const reader = new Reader(data, 'the address of a connection')
  const connection = { to: address(reader), from: address(reader) }
  reader.end()
  return connection
}

export function buildConnection({ to, from }: Connection): Buffer {
  return append(append(new Writer(), to), from).finish()
}

/** string address to bind, uint32 port (RFC 4254 7.1); for an X11 channel: string originator, uint32 port. */
export function parseAddress(data: Uint8Array): Address {
  const reader = new Reader(data, 'an address')
  const parsed = address(reader)
  reader.end()
  return parsed
}

export function buildAddress(value: Address): Buffer {
  return append(new Writer(), value).finish()
}

/** uint32 bound port (RFC 4254 7.1): the reply to a request for port 0. */
export function parsePort(data: Uint8Array): number {
  const reader = new Reader(data, 'the port that was bound')
  const port = reader.uint32()
  reader.end()
  return port
}

export function buildPort(port: number): Buffer {
  return new Writer(4).uint32(port).finish()
}

/** string path, string reserved, uint32 reserved: direct-streamlocal@openssh.com. */
export function parseDirectSocket(data: Uint8Array): string {
  const reader = new Reader(data, 'direct-streamlocal@openssh.com')
  const path = latin1(reader.string())
  reader.string()
  reader.uint32()
  reader.end()
  return path
}

export function buildDirectSocket(path: string): Buffer {
  return appendBytes(new Writer(), path).string('').uint32(0).finish()
}

/** string path, string reserved: forwarded-streamlocal@openssh.com. */
export function parseForwardedSocket(data: Uint8Array): string {
  const reader = new Reader(data, 'forwarded-streamlocal@openssh.com')
  const path = latin1(reader.string())
  reader.string()
  reader.end()
  return path
}

export function buildForwardedSocket(path: string): Buffer {
  return appendBytes(new Writer(), path).string('').finish()
}

/** string path: streamlocal-forward@openssh.com and its cancellation. */
export function parseSocketPath(data: Uint8Array): string {
  const reader = new Reader(data, 'the path of a socket')
  const path = latin1(reader.string())
  reader.end()
  return path
}

export function buildSocketPath(path: string): Buffer {
  return appendBytes(new Writer(), path).finish()
}

export interface X11Request {
  singleConnection: boolean
  /** Name of the authentication protocol, its exact bytes. */
  protocol: string
  /** Hexadecimal, its exact bytes. */
  cookie: string
  screen: number
}

/** boolean single connection, string protocol, string cookie, uint32 screen (RFC 4254 6.3.1). */
export function parseX11Request(data: Uint8Array): X11Request {
  const reader = new Reader(data, 'x11-req')
  const request = {
    singleConnection: reader.boolean(),
    protocol: latin1(reader.string()),
    cookie: latin1(reader.string()),
    screen: reader.uint32(),
  }
  reader.end()
  return request
}

export function buildX11Request(request: X11Request): Buffer {
  return new Writer(96)
    .boolean(request.singleConnection)
    .string(request.protocol)
    .string(request.cookie)
    .uint32(request.screen)
    .finish()
}

/**
 * Returns the reason why an address is invalid, or undefined if it is valid. `anywhere` allows an empty host
 * and port 0, as for a bind.
 */
export function addressFlaw({ host, port }: Address, anywhere = false): string | undefined {
  if (host.length > MAX_HOST) return `a host name has at most ${MAX_HOST} bytes`
  if (!HOST.test(host) && !(anywhere && host === '')) return 'a host name is printable ASCII without blanks'
  if (port > MAX_PORT || (port === 0 && !anywhere)) return `a port is from 1 to ${MAX_PORT}`
  return undefined
}

export function pathFlaw(path: string): string | undefined {
  if (path.length > MAX_PATH) return `the path of a socket has at most ${MAX_PATH} bytes`
  return PATH.test(path) ? undefined : 'the path of a socket has no control characters, and is not empty'
}

/** `host:port`, or `[host]:port` for a host with colons. */
export function addressText({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Decodes UTF-8 for display; invalid bytes are replaced. */
export function pathText(path: string): string {
  return displayText(Buffer.from(path, 'latin1'))
}

function address(reader: Reader): Address {
  return { host: latin1(reader.string()), port: reader.uint32() }
}

function append(writer: Writer, { host, port }: Address): Writer {
  return appendBytes(writer, host).uint32(port)
}

function appendBytes(writer: Writer, bytes: string): Writer {
  return writer.string(Buffer.from(bytes, 'latin1'))
}
