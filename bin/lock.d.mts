/** Runs `work` while holding the lock at `path`, which other processes wait for; `say` gets a line when there is something to wait for. */
export declare function withLock<T>(
  path: string,
  say: (line: string) => void,
  work: () => T | Promise<T>,
): Promise<T>
