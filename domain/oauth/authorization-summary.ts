import type { JsonObject } from '../shared/json.ts';
import type { Grant, GrantedAuthorization, GrantHolder } from './grant.ts';

export const WALLET_AUTHENTICATIONS = ['attestation', 'key', 'none'] as const;

/** Data about the authorization of a token, shown to the operator only. */
export type AuthorizationSummary = {
  readonly queries?: JsonObject | undefined;
  readonly code?: string | undefined;
  readonly authorizedAt?: Date | undefined;
  /** Time at which the code was redeemed, and how the wallet authenticated then. */
  readonly tokenAt?: Date | undefined;
  readonly walletAuthentication?: (typeof WALLET_AUTHENTICATIONS)[number] | undefined;
};

/** @param grant `consumedAt` and `holder` are null until the code is redeemed; an unredeemed code is not shown. */
export function authorizationSummary({
  authorization,
  consumedAt,
  holder,
}: Pick<Grant, 'authorization' | 'consumedAt' | 'holder'>): AuthorizationSummary {
  const { queries, code, authorizedAtMs } = authorization ?? {};
  const isRedeemed = consumedAt !== null;
  return {
    ...{ queries, code: isRedeemed ? code : undefined },
    authorizedAt: authorizedAtMs === undefined ? undefined : new Date(authorizedAtMs),
    tokenAt: consumedAt ?? undefined,
    walletAuthentication: isRedeemed && holder !== null ? authenticationOf(holder) : undefined,
  };
}

function authenticationOf({ authenticated, instance }: GrantHolder): (typeof WALLET_AUTHENTICATIONS)[number] {
  if (instance !== undefined) return 'attestation';
  return authenticated === true ? 'key' : 'none';
}

/** The data that renewals need after the session is anonymized. */
export function withoutRequestData(authorization: GrantedAuthorization): GrantedAuthorization {
  const { queries: _queries, code: _code, authorizedAtMs: _at, ...remaining } = authorization;
  return remaining;
}
