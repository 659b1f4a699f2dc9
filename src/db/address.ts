/** An address of the database, and what its sessions can do. */
export interface Address {
  url: string
  /**
   * Whether a pooler in transaction mode may be on the way: each transaction may then run in another session. So
   * nothing may depend on a session: no start-up options, no named statements, no locks, no notifications. The settings
   * of the login bring role, search path and date style (check-connection.ts).
   */
  isPooled: boolean
}

/** @param address a plain text leads to the server itself */
export function asAddress(address: Address | string): Address {
  return typeof address === 'string' ? { url: address, isPooled: false } : address
}
