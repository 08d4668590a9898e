/**
 * Settings of Node and of the C library under which the broker and its session workers keep less memory. They
 * hold from the start of a process only.
 */
export const LEAN = {
  /** Young objects are collected in halves of 4 MiB instead of 16; src/memory/slack.ts calls the collector. */
  arguments: ['--max-semi-space-size=4', '--expose-gc'],
  /**
   * Two arenas instead of eight for each processor, and free memory above 128 KiB goes back to the system. A
   * value that the environment has already is kept.
   */
  environment: { MALLOC_ARENA_MAX: '2', MALLOC_TRIM_THRESHOLD_: '131072' },
}
