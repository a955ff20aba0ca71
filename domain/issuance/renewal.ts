import { RENEWING_STATUSES, type Session } from '../sessions/session.ts';

/**
 * True if a wallet may get issued credentials again, also after the session's lifetime: as long as its grant is valid. Credentials that
 * were not issued within the session's lifetime cannot be renewed.
 * @param grantId of the access token; absent for a token of an external server, whose rights end with the session.
 */
export function mayRenew(
  { status, issuedMask, configurationIds }: Pick<Session, 'status' | 'issuedMask' | 'configurationIds'>,
  configurationId: string,
  grantId: string | undefined,
): boolean {
  const bit = 2 ** configurationIds.indexOf(configurationId);
  return grantId !== undefined && (issuedMask & bit) !== 0 && RENEWING_STATUSES.includes(status);
}

/**
 * Configurations that remain renewable after the offer's data are removed: those whose claims come from their configuration or its webhook.
 * Claims and webhooks of an offer end with its session.
 * @returns bits of the configurations.
 */
export function renewableMask({
  configurationIds,
  issuedMask,
  request,
}: Pick<Session, 'configurationIds' | 'issuedMask' | 'request'>): number {
  if (request?.kind !== 'issuance') return request === null ? issuedMask : 0;
  return configurationIds.reduce(
    (mask, id, index) => (Object.hasOwn(request.credentialClaims, id) ? mask & ~(2 ** index) : mask),
    issuedMask,
  );
}
