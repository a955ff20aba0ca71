import { hasBuiltInServer } from '../../domain/issuance/issuance-configuration.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { ConsumedValue } from '../../domain/oauth/consumed-value.ts';
import type { VerifiedDpopProof } from '../../domain/oauth/dpop.ts';
import type { ExternalToken } from '../../domain/oauth/external-token.ts';
import { serverOf } from '../../domain/oauth/servers.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { needs } from '../needs.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { withChallengeSchemes } from './challenge-schemes.ts';
import { DpopProofs } from './dpop-proofs.ts';
import { ExternalSessions } from './external-sessions.ts';
import { ExternalTokens } from './external-tokens.ts';
import { WalletTokens } from './wallet-tokens.ts';

/** Credentials of a wallet's request to a protected endpoint. */
export type WalletCredentials = {
  readonly authorization: string | undefined;
  /** All `DPoP` header fields. */
  readonly dpop: readonly string[];
};

export type AuthenticatedWallet = {
  readonly token: WalletTokenClaims;
  /** Consumed by the caller's commit; undefined for a bearer token. */
  readonly dpop: VerifiedDpopProof | undefined;
};

type ExpectedRequest = { readonly method: string; readonly url: string; readonly now: Date };

type SentToken = { readonly kind: 'dpop' | 'bearer'; readonly text: string };

/** A verified token of a server of this service, or of an external one that the tenant configured. */
type VerifiedWalletToken = { readonly own: WalletTokenClaims } | { readonly external: ExternalToken };

const invalid = (message: string) => new Failure('invalid_token', message);

/** Verifies the access tokens of wallets and their proofs of possession. */
export class WalletAuthenticator extends needs({
  walletTokens: WalletTokens,
  externalTokens: ExternalTokens,
  externalSessions: ExternalSessions,
  dpopProofs: DpopProofs,
}) {
  /**
   * Verifies a token and its proof of possession (RFC 9449 section 7.1). The commit that follows checks if its grant was revoked and
   * if the proof was used before.
   * @param expected `url`: the external address of the endpoint.
   * @throws Failure `missing_token`, `invalid_token`, `invalid_dpop_proof`, `use_dpop_nonce`, and the failures of
   *   `ExternalTokens` and `ExternalSessions`.
   */
  authenticate(tenant: TenantConfiguration, credentials: WalletCredentials, expected: ExpectedRequest): Promise<AuthenticatedWallet> {
    return withChallengeSchemes(tenant, () => this.#authenticate(tenant, credentials, expected));
  }

  async #authenticate(
    tenant: TenantConfiguration,
    { authorization, dpop }: WalletCredentials,
    expected: ExpectedRequest,
  ): Promise<AuthenticatedWallet> {
    const { kind, text } = parseAuthorization(authorization);
    const verified = await this.#verify(tenant, text, expected.now);
    const claims = 'own' in verified ? verified.own : verified.external;
    const proof = await this.#prove(tenant, { kind, text, dpop }, claims.keyThumbprint, expected);
    if ('own' in verified) return { token: verified.own, dpop: proof };
    if (proof === undefined && (await tenant.issuance()).dPopRequired) {
      throw invalid('this issuer only accepts access tokens that are bound to a key');
    }
    // Last, since it may create a session for the user
    const token = await this.ports.externalSessions.resolve(tenant, verified.external, expected.now);
    return { token, dpop: proof };
  }

  /** @throws Failure `invalid_token`, `unavailable`. */
  async #verify(tenant: TenantConfiguration, text: string, now: Date): Promise<VerifiedWalletToken> {
    const { walletTokens, externalTokens } = this.ports;
    const localClaims = await walletTokens.verify(tenant, text);
    const external = localClaims === undefined ? await externalTokens.verify(tenant, text, now) : undefined;
    if (external !== undefined) return { external };
    if (localClaims === undefined || !(await isServed(tenant, localClaims))) throw invalid('the access token is invalid or expired');
    return { own: localClaims };
  }

  /** @returns undefined for a bearer token. */
  async #prove(
    tenant: TenantConfiguration,
    { kind, text, dpop }: SentToken & Pick<WalletCredentials, 'dpop'>,
    thumbprint: string | undefined,
    expected: ExpectedRequest,
  ): Promise<VerifiedDpopProof | undefined> {
    if (thumbprint === undefined) {
      if (kind === 'dpop') throw invalid('this access token is not bound to a key');
      return undefined;
    }
    // RFC 9449 section 7.2: a bound token never passes as a bearer token
    if (kind === 'bearer') throw invalid('this access token is bound to a key: use the DPoP scheme');
    const accepted = await this.ports.dpopProofs.verify(tenant, dpop, { ...expected, issuer: tenant.issuer, accessToken: text });
    // RFC 9449 section 7.1
    if (accepted.thumbprint !== thumbprint) throw invalid('the access token is bound to another key');
    return accepted;
  }
}

/** Tokens of a server that the tenant has disabled are invalid. */
async function isServed(tenant: TenantConfiguration, { issuer, audience }: WalletTokenClaims): Promise<boolean> {
  const issuance = await tenant.issuance();
  return serverOf(issuer, audience) === 'chained' ? issuance.chainedAs?.enabled === true : hasBuiltInServer(issuance);
}

/** @throws Failure `missing_token`, `invalid_token`. */
function parseAuthorization(authorization: string | undefined): SentToken {
  if (authorization === undefined) throw new Failure('missing_token');
  const [scheme = '', text = '', surplus] = authorization.trim().split(/ +/);
  const kind = scheme.toLowerCase();
  if (kind !== 'dpop' && kind !== 'bearer') throw new Failure('missing_token');
  // RFC 6750 section 3.1: more than one method, or an invalid token, is a malformed request
  if (surplus !== undefined || text === '') throw new Failure('invalid_token', 'the access token is malformed');
  return { kind, text };
}

export function consumedByWallet({ dpop }: AuthenticatedWallet): readonly ConsumedValue[] {
  return dpop === undefined ? [] : [{ kind: 'dpop_jti', hash: dpop.hash, expiresAt: dpop.expiresAt }];
}
