/** How a broker starts a session worker in its cage. */
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CAGE_VARIABLE, type Cage, type Launch, type Program } from './cage.ts'
import { systemFiles } from './system-files.ts'

/** For `spawn` of node:child_process. */
export interface SpawnCommand {
  file: string
  arguments: string[]
  env: Record<string, string>
  uid?: number
  gid?: number
}

const LAUNCHER = fileURLToPath(new URL(`./launch${extname(import.meta.url)}`, import.meta.url))

/**
 * Returns the command that runs the program in the cage. `spawn` opens the descriptors of `keepOpen`, an `ipc`
 * channel included. On systems other than Linux only the user and Node's permissions hold.
 */
export function confined(program: Program, cage: Cage): SpawnCommand {
  const programArguments = [...permissions(cage), ...program.arguments]
  const user = {
    ...(cage.uid !== undefined && { uid: cage.uid }),
    ...(cage.gid !== undefined && { gid: cage.gid }),
  }
  if (process.platform !== 'linux') {
    return { file: process.execPath, arguments: programArguments, env: { ...program.env }, ...user }
  }
  const launch: Launch = { arguments: programArguments, cage }
  return {
    file: process.execPath,
    // If the launcher cannot become the program (no koffi), it goes on as the program by the same line.
    arguments: ['--disable-warning=ExperimentalWarning', '--require', LAUNCHER, ...program.arguments],
    env: { ...program.env, [CAGE_VARIABLE]: JSON.stringify(launch) },
    ...user,
  }
}

/**
 * Node's own check of files, programs and the debugger. Foreign code gets around it, so it is no boundary; it
 * stops scripts where the kernel has no Landlock.
 */
function permissions({ readable, uid }: Cage): string[] {
  const files = [...readable, ...systemFiles(uid !== undefined)]
  return [
    '--permission',
    '--allow-addons',
    '--allow-worker',
    '--disable-warning=PERM0001',
    '--disable-warning=PERM0006',
    ...files.map((file) => `--allow-fs-read=${file}`),
  ]
}
