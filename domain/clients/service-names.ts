/** Name of the configuration import in the audit log; client ids contain no space. */
export const IMPORT_ACTOR = 'folder import';

/** True for a name that looks like the service's own in the audit log. */
export function isServiceName(clientId: string): boolean {
  return clientId.trim().replaceAll(/ +/g, ' ').toLowerCase() === IMPORT_ACTOR;
}
