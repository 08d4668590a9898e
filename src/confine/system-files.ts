/** Files of the system that Node, the C library and OpenSSL read in a worker. None holds a secret. */

const LIBRARIES = ['/lib', '/lib64', '/usr/lib', '/usr/lib64', '/usr/local/lib', '/etc/ld.so.cache']
const DEVICES = ['/dev/null', '/dev/urandom', '/dev/random']
const NODE = ['/proc/self', '/proc/meminfo', '/proc/cpuinfo', '/sys/fs/cgroup', '/sys/devices/system/cpu']
const TEXTS = ['/usr/share/zoneinfo', '/usr/share/ca-certificates', '/usr/local/share/ca-certificates']
/** Settings of look-ups. A rule holds for a file and not for its path: these may be replaced while a worker runs. */
const LOOKUPS = [
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/nsswitch.conf',
  '/etc/host.conf',
  '/etc/gai.conf',
  '/etc/services',
  '/etc/localtime',
  '/etc/ssl',
  '/etc/pki',
]
/** Where the resolver's file is in truth, if /etc/resolv.conf is a link. */
const RESOLVERS = ['/run/systemd/resolve', '/run/resolvconf', '/run/NetworkManager']

/**
 * `hasOwnUser`: the worker is another user than the broker, and the system keeps secrets in /etc from it. Then
 * it reads the folder, and with it the files that replace those of today.
 */
export function systemFiles(hasOwnUser: boolean): readonly string[] {
  return [...LIBRARIES, ...DEVICES, ...NODE, ...TEXTS, ...RESOLVERS, ...(hasOwnUser ? ['/etc'] : LOOKUPS)]
}
