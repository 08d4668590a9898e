/** Index of the audit log's handovers, so that finding them does not read all of it. */
export const version = 14

export const sql = `
create index audit_handovers on audit (sequence) where code = 'audit.handover';
`
