import { EVENTS, type EventCode } from '../../src/audit/events/catalogue.ts'

/** All codes of the catalogue. */
export const EVENT_CODES = Object.keys(EVENTS) as EventCode[]
