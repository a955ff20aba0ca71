/** Name under which the import of configuration files stands in the audit log; no client has a space in its id. */
export const IMPORTER = 'folder import';

/** Whether a name reads like one under which the service acts as if it were a client. */
export function isServiceName(clientId: string): boolean {
  return clientId.trim().replaceAll(/ +/g, ' ').toLowerCase() === IMPORTER;
}
