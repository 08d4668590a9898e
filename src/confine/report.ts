/** The bounds that hold a session worker, in words for the log and for `sallyport check`. */

export interface CageReport {
  uid: number
  gid: number
  /** Whether any of root's capabilities is left. */
  capabilities: boolean
  noNewPrivileges: boolean
  /** The version of Landlock. Without one, all files of the user are within reach. */
  landlock?: number
  /** Whether the filter of system calls holds. */
  seccomp: boolean
  /** Whether other processes of the user can read the worker's memory. */
  dumpable: boolean
  /** Whether Node's own permissions hold. */
  permission: boolean
  /** Lists the bounds that the system lacks, a sentence each. */
  missing: readonly string[]
}

export interface Boundary {
  /** Whether the kernel keeps workers and broker apart as two users. */
  holds: boolean
  /** Whether nothing is missing either. */
  isWhole: boolean
  /** One sentence. */
  text: string
}

/** `broker`: the broker's own user; `processes`: the ones that are held, in the plural. */
export function boundaryOf(report: CageReport, broker: number, processes = 'session workers'): Boundary {
  const { uid, capabilities, missing } = report
  const holds = uid !== broker && uid > 0 && !capabilities
  const held = [
    report.noNewPrivileges && 'no new privileges',
    report.landlock !== undefined && `Landlock ${report.landlock}`,
    report.seccomp && 'a filter of system calls',
    !report.dumpable && 'closed memory',
    report.permission && "Node's permissions",
  ].filter((part) => part !== false)
  const rest = held.length === 0 ? 'nothing else holds them' : `they have ${held.join(', ')}`
  const lack = missing.length === 0 ? '' : `; missing: ${missing.join('; ')}`
  const isWhole = holds && missing.length === 0
  if (holds) return { holds, isWhole, text: `${processes} run as user ${uid}: ${rest}${lack}` }
  return { holds, isWhole, text: `no boundary: ${reason(report, broker, processes)}; ${rest}${lack}` }
}

function reason({ uid, capabilities }: CageReport, broker: number, processes: string): string {
  if (uid === broker && broker !== 0) {
    return `without root, ${processes} run as the broker's own user (${uid}), and the kernel's separation of users is missing: start as root, or with the capabilities CAP_SETUID, CAP_SETGID and CAP_KILL, with run_as`
  }
  if (uid === 0) return `${processes} run as root: set run_as`
  return capabilities
    ? `${processes} (user ${uid}) have some of root's capabilities`
    : `the user of ${processes} is not known on ${process.platform}`
}
