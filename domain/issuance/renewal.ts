import { RENEWING_STATUSES, type Session } from '../sessions/session.ts';

/**
 * Whether a wallet may get once more what the session issued, also after its time: as long as its grant lives. What nobody
 * collected in time is over with the session.
 * @param grantId of the access token; absent for one of a foreign server, whose rights end with the session.
 */
export function renews(
  { status, issuedMask, configurationIds }: Pick<Session, 'status' | 'issuedMask' | 'configurationIds'>,
  configurationId: string,
  grantId: string | undefined,
): boolean {
  const bit = 2 ** configurationIds.indexOf(configurationId);
  return grantId !== undefined && (issuedMask & bit) !== 0 && RENEWING_STATUSES.includes(status);
}

/**
 * What is left to renew once everything that the offer said is removed: credentials whose claims come from their
 * configuration or its webhook. Claims and webhooks of an offer end with its session.
 * @returns bits of the configurations.
 */
export function renewableAfterwards({
  configurationIds,
  issuedMask,
  request,
}: Pick<Session, 'configurationIds' | 'issuedMask' | 'request'>): number {
  if (request?.kind !== 'issuance') return request === null ? issuedMask : 0;
  return configurationIds.reduce(
    (mask, id, place) => (Object.hasOwn(request.credentialClaims, id) ? mask & ~(2 ** place) : mask),
    issuedMask,
  );
}
