import { hasBuiltIn } from '../../domain/issuance/issuance-configuration.ts';
import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { AcceptedDpopProof } from '../../domain/oauth/dpop.ts';
import type { ExternalToken } from '../../domain/oauth/external-token.ts';
import { serverOf } from '../../domain/oauth/servers.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
import { Failure } from '../../domain/shared/failure.ts';
import { needs } from '../needs.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { DpopProofs } from './dpop-proofs.ts';
import { ExternalSessions } from './external-sessions.ts';
import { ExternalTokens } from './external-tokens.ts';
import { namingSchemes } from './wallet-challenges.ts';
import { WalletTokens } from './wallet-tokens.ts';

/** What a wallet sends to a protected endpoint, as it came. */
export type WalletCredentials = {
  readonly authorization: string | undefined;
  /** Every `DPoP` header field. */
  readonly dpop: readonly string[];
};

export type AuthenticatedWallet = {
  readonly token: WalletTokenClaims;
  /** To be spent by the caller's commit; undefined for a bearer token. */
  readonly dpop: AcceptedDpopProof | undefined;
};

type Expected = { readonly method: string; readonly url: string; readonly now: Date };

type SentToken = { readonly kind: 'dpop' | 'bearer'; readonly text: string };

/** A verified token of a server of this service, or of one that the tenant names. */
type Verified = { readonly own: WalletTokenClaims } | { readonly external: ExternalToken };

const invalid = (message: string) => new Failure('invalid_token', message);

/** Checks the access tokens of wallets, and that the one who sends one holds its key. */
export class WalletAuthenticator extends needs({
  walletTokens: WalletTokens,
  externalTokens: ExternalTokens,
  externalSessions: ExternalSessions,
  dpopProofs: DpopProofs,
}) {
  /**
   * Checks a token and its proof of possession (RFC 9449 section 7.1). Whether its grant was revoked and whether the
   * proof was used before is told by the commit that follows.
   * @param expected `url`: the external address of the endpoint.
   * @throws Failure `missing_token`, `invalid_token`, `invalid_dpop_proof`, `use_dpop_nonce`, and what
   *   `ExternalTokens` and `ExternalSessions` throw.
   */
  authenticate(configured: TenantConfiguration, credentials: WalletCredentials, expected: Expected): Promise<AuthenticatedWallet> {
    return namingSchemes(configured, () => this.#authenticate(configured, credentials, expected));
  }

  async #authenticate(
    configured: TenantConfiguration,
    { authorization, dpop }: WalletCredentials,
    expected: Expected,
  ): Promise<AuthenticatedWallet> {
    const { kind, text } = parseAuthorization(authorization);
    const verified = await this.#verify(configured, text, expected.now);
    const bound = 'own' in verified ? verified.own : verified.external;
    const proof = await this.#prove(configured, { kind, text, dpop }, bound.keyThumbprint, expected);
    if ('own' in verified) return { token: verified.own, dpop: proof };
    if (proof === undefined && (await configured.issuance()).dPopRequired) {
      throw invalid('this issuer takes access tokens only that are bound to a key');
    }
    // Last, since it opens a session for a user who has none
    const token = await this.ports.externalSessions.resolve(configured, verified.external, expected.now);
    return { token, dpop: proof };
  }

  /** @throws Failure `invalid_token`, `unavailable`. */
  async #verify(configured: TenantConfiguration, text: string, now: Date): Promise<Verified> {
    const { walletTokens, externalTokens } = this.ports;
    const own = await walletTokens.verify(configured, text);
    const external = own === undefined ? await externalTokens.verify(configured, text, now) : undefined;
    if (external !== undefined) return { external };
    if (own === undefined || !(await isServed(configured, own))) throw invalid('the access token is invalid or expired');
    return { own };
  }

  /** @returns undefined for a bearer token. */
  async #prove(
    configured: TenantConfiguration,
    { kind, text, dpop }: SentToken & Pick<WalletCredentials, 'dpop'>,
    thumbprint: string | undefined,
    expected: Expected,
  ): Promise<AcceptedDpopProof | undefined> {
    if (thumbprint === undefined) {
      if (kind === 'dpop') throw invalid('this access token is not bound to a key');
      return undefined;
    }
    // RFC 9449 section 7.2: a bound token never passes as a bearer token
    if (kind === 'bearer') throw invalid('this access token is bound to a key: use the DPoP scheme');
    const accepted = await this.ports.dpopProofs.verify(configured, dpop, { ...expected, issuer: configured.issuer, accessToken: text });
    // RFC 9449 section 7.1
    if (accepted.thumbprint !== thumbprint) throw invalid('the access token is bound to another key');
    return accepted;
  }
}

/** A server that the tenant has no longer vouches for nobody any more. */
async function isServed(configured: TenantConfiguration, { issuer, audience }: WalletTokenClaims): Promise<boolean> {
  const issuance = await configured.issuance();
  return serverOf(issuer, audience) === 'chained' ? issuance.chainedAs?.enabled === true : hasBuiltIn(issuance);
}

/** @throws Failure `missing_token`, `invalid_token`. */
function parseAuthorization(authorization: string | undefined): SentToken {
  if (authorization === undefined) throw new Failure('missing_token');
  const [scheme = '', text = '', surplus] = authorization.trim().split(/ +/);
  const kind = scheme.toLowerCase();
  if (kind !== 'dpop' && kind !== 'bearer') throw new Failure('missing_token');
  // RFC 6750 section 3.1: two ways at once, or something that is no token, is a malformed request
  if (surplus !== undefined || text === '') throw new Failure('invalid_token', 'the access token is malformed');
  return { kind, text };
}

/** What an authenticated request spends. */
export function usedByWallet({ dpop }: AuthenticatedWallet): readonly UsedValue[] {
  return dpop === undefined ? [] : [{ kind: 'dpop_jti', hash: dpop.hash, expiresAt: dpop.expiresAt }];
}
