/**
 * Runs `work` with the lock at `path`, which other processes wait for; `say` gets a line if there is a wait.
 */
export declare function withLock<T>(
  path: string,
  say: (line: string) => void,
  work: () => T | Promise<T>,
): Promise<T>
