/**
 * The turns in which sessions end: a drain, a target that stops, or a network that is gone ends hundreds at once, and
 * sealing them all in one turn of the event loop would hold up the others.
 */
import { Slices } from '../../src/threads/slices.ts'

export const ends = new Slices()
