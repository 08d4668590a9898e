/** Handovers of the audit log's beginning are found without reading all of it. */
export const version = 14

export const sql = `
create index audit_handovers on audit (sequence) where code = 'audit.handover';
`
