/** Numbers of Linux's system calls, by Node's names of the processors. */

export type Processor = 'x64' | 'arm64'

export type NumberOf = Readonly<Record<Processor, number>>

/** Calls that are judged by their arguments, or that the launcher makes itself. */
export const CALLS = {
  clone: { x64: 56, arm64: 220 },
  clone3: { x64: 435, arm64: 435 },
  kill: { x64: 62, arm64: 129 },
  tgkill: { x64: 234, arm64: 131 },
  rt_sigqueueinfo: { x64: 129, arm64: 138 },
  rt_tgsigqueueinfo: { x64: 297, arm64: 240 },
  mmap: { x64: 9, arm64: 222 },
  setpriority: { x64: 141, arm64: 140 },
  prlimit64: { x64: 302, arm64: 261 },
  sched_setaffinity: { x64: 203, arm64: 122 },
  sched_setscheduler: { x64: 144, arm64: 119 },
  sched_setparam: { x64: 142, arm64: 118 },
  sched_setattr: { x64: 314, arm64: 274 },
  ioctl: { x64: 16, arm64: 29 },
  listen: { x64: 50, arm64: 201 },
  socket: { x64: 41, arm64: 198 },
  close_range: { x64: 436, arm64: 436 },
  fcntl: { x64: 72, arm64: 25 },
  capset: { x64: 126, arm64: 91 },
  prctl: { x64: 157, arm64: 167 },
  seccomp: { x64: 317, arm64: 277 },
  landlock_create_ruleset: { x64: 444, arm64: 444 },
  landlock_add_rule: { x64: 445, arm64: 445 },
  landlock_restrict_self: { x64: 446, arm64: 446 },
} as const satisfies Record<string, NumberOf>

/** Calls that start another program: forbidden to a worker once it is itself the last one. */
export const PROGRAMS = {
  execve: { x64: 59, arm64: 221 },
  execveat: { x64: 322, arm64: 281 },
} as const satisfies Record<string, NumberOf>

/** Calls that a worker may never make. A processor that lacks one has no number of it. */
export const FORBIDDEN = {
  // Starts another process. Threads are `clone`, judged by its flags.
  fork: { x64: 57 },
  vfork: { x64: 58 },
  // Reaches into another process.
  ptrace: { x64: 101, arm64: 117 },
  process_vm_readv: { x64: 310, arm64: 270 },
  process_vm_writev: { x64: 311, arm64: 271 },
  process_madvise: { x64: 440, arm64: 440 },
  process_mrelease: { x64: 448, arm64: 448 },
  pidfd_open: { x64: 434, arm64: 434 },
  pidfd_getfd: { x64: 438, arm64: 438 },
  pidfd_send_signal: { x64: 424, arm64: 424 },
  kcmp: { x64: 312, arm64: 272 },
  tkill: { x64: 200, arm64: 130 },
  ioprio_set: { x64: 251, arm64: 30 },
  migrate_pages: { x64: 256, arm64: 238 },
  move_pages: { x64: 279, arm64: 239 },
  // Shares memory or messages with other processes of the user, past the limit of memory.
  shmget: { x64: 29, arm64: 194 },
  shmat: { x64: 30, arm64: 196 },
  shmctl: { x64: 31, arm64: 195 },
  semget: { x64: 64, arm64: 190 },
  semop: { x64: 65, arm64: 193 },
  semtimedop: { x64: 220, arm64: 192 },
  semctl: { x64: 66, arm64: 191 },
  msgget: { x64: 68, arm64: 186 },
  msgsnd: { x64: 69, arm64: 189 },
  msgrcv: { x64: 70, arm64: 188 },
  msgctl: { x64: 71, arm64: 187 },
  mq_open: { x64: 240, arm64: 180 },
  mq_unlink: { x64: 241, arm64: 181 },
  memfd_create: { x64: 319, arm64: 279 },
  memfd_secret: { x64: 447, arm64: 447 },
  // Makes Unix sockets, which send datagrams to the services of the machine too, such as its log.
  socketpair: { x64: 53, arm64: 199 },
  // Opens files by other ways than their path, or changes which files are there.
  open_by_handle_at: { x64: 304, arm64: 265 },
  name_to_handle_at: { x64: 303, arm64: 264 },
  fanotify_init: { x64: 300, arm64: 262 },
  fanotify_mark: { x64: 301, arm64: 263 },
  mount: { x64: 165, arm64: 40 },
  umount2: { x64: 166, arm64: 39 },
  pivot_root: { x64: 155, arm64: 41 },
  chroot: { x64: 161, arm64: 51 },
  fsopen: { x64: 430, arm64: 430 },
  fsconfig: { x64: 431, arm64: 431 },
  fsmount: { x64: 432, arm64: 432 },
  fspick: { x64: 433, arm64: 433 },
  move_mount: { x64: 429, arm64: 429 },
  open_tree: { x64: 428, arm64: 428 },
  mount_setattr: { x64: 442, arm64: 442 },
  unshare: { x64: 272, arm64: 97 },
  setns: { x64: 308, arm64: 268 },
  // Is of no use to a worker, and was a way into kernels before.
  io_uring_setup: { x64: 425, arm64: 425 },
  io_uring_enter: { x64: 426, arm64: 426 },
  io_uring_register: { x64: 427, arm64: 427 },
  bpf: { x64: 321, arm64: 280 },
  perf_event_open: { x64: 298, arm64: 241 },
  userfaultfd: { x64: 323, arm64: 282 },
  add_key: { x64: 248, arm64: 217 },
  request_key: { x64: 249, arm64: 218 },
  keyctl: { x64: 250, arm64: 219 },
  personality: { x64: 135, arm64: 92 },
  modify_ldt: { x64: 154 },
  iopl: { x64: 172 },
  ioperm: { x64: 173 },
  // Is the administrator's.
  quotactl: { x64: 179, arm64: 60 },
  quotactl_fd: { x64: 443, arm64: 443 },
  acct: { x64: 163, arm64: 89 },
  swapon: { x64: 167, arm64: 224 },
  swapoff: { x64: 168, arm64: 225 },
  reboot: { x64: 169, arm64: 142 },
  kexec_load: { x64: 246, arm64: 104 },
  kexec_file_load: { x64: 320, arm64: 294 },
  init_module: { x64: 175, arm64: 105 },
  finit_module: { x64: 313, arm64: 273 },
  delete_module: { x64: 176, arm64: 106 },
  syslog: { x64: 103, arm64: 116 },
} as const satisfies Record<string, Partial<NumberOf>>

/** The last call that the lists above were written with (Linux 6.18). Later ones count as unknown to the kernel. */
export const LAST_KNOWN_CALL = 469
