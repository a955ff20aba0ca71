import type { JsonObject } from '../shared/json.ts';
import type { Grant, GrantedAuthorization, GrantHolder } from './grant.ts';

export const WALLET_AUTHENTICATIONS = ['attestation', 'key', 'none'] as const;

/** What the operator is shown of the way to a token, which counts for nothing else. */
export type AskedAuthorization = {
  readonly queries?: JsonObject | undefined;
  /** Only once it was spent. */
  readonly code?: string | undefined;
  readonly authorizedAt?: Date | undefined;
  /** When its code was spent for a token, and how that wallet proved which product it is. */
  readonly tokenAt?: Date | undefined;
  readonly walletAuthentication?: (typeof WALLET_AUTHENTICATIONS)[number] | undefined;
};

/** @param grant `consumedAt` and `holder` are null while somebody could still come with the code. */
export function askedBy({ authorization, consumedAt, holder }: Pick<Grant, 'authorization' | 'consumedAt' | 'holder'>): AskedAuthorization {
  const { queries, code, authorizedAtMs } = authorization ?? {};
  const isSpent = consumedAt !== null;
  return {
    ...{ queries, code: isSpent ? code : undefined },
    authorizedAt: authorizedAtMs === undefined ? undefined : new Date(authorizedAtMs),
    tokenAt: consumedAt ?? undefined,
    walletAuthentication: isSpent && holder !== null ? authenticationOf(holder) : undefined,
  };
}

function authenticationOf({ authenticated, instance }: GrantHolder): (typeof WALLET_AUTHENTICATIONS)[number] {
  if (instance !== undefined) return 'attestation';
  return authenticated === true ? 'key' : 'none';
}

/** What is left for renewals once the session is anonymised. */
export function withoutRequest(authorization: GrantedAuthorization): GrantedAuthorization {
  const { queries: _queries, code: _code, authorizedAtMs: _at, ...rest } = authorization;
  return rest;
}
