import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import type { AcceptedDpopProof } from '../../domain/oauth/dpop.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { UsedValue } from '../ports/store.ts';
import type { DpopProofs } from './dpop-proofs.ts';
import type { TenantView } from './tenant-views.ts';
import type { WalletTokens } from './wallet-tokens.ts';

/** What a wallet sends to a protected endpoint, as it came. */
export type WalletCredentials = {
  readonly authorization: string | undefined;
  /** Every `DPoP` header field. */
  readonly dpop: readonly string[];
};

export type AuthenticatedWallet = {
  readonly token: WalletTokenClaims;
  /** To be remembered by the caller in its beat; undefined for a bearer token. */
  readonly dpop: AcceptedDpopProof | undefined;
};

type Ports = { readonly walletTokens: WalletTokens; readonly dpopProofs: DpopProofs };

/** Checks the access tokens of wallets, and that whoever sends one holds its key. */
export class WalletAuthenticator {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * Checks a token and its proof of possession (RFC 9449 section 7.1). Whether its grant was revoked and whether the
   * proof was used before is told by the beat that follows.
   * @param expected `url`: the external address of the endpoint.
   * @throws Failure `missing_token`, `invalid_token`, `invalid_dpop_proof`, `use_dpop_nonce`.
   */
  async authenticate(
    view: TenantView,
    { authorization, dpop }: WalletCredentials,
    expected: { readonly method: string; readonly url: string; readonly now: Date },
  ): Promise<AuthenticatedWallet> {
    const { walletTokens, dpopProofs } = this.#ports;
    const { kind, text } = readAuthorization(authorization);
    const token = await walletTokens.verify(view, text);
    if (token === undefined) throw new Failure('invalid_token', 'the access token is invalid or expired');
    if (token.keyThumbprint === undefined) {
      if (kind === 'dpop') throw new Failure('invalid_token', 'this access token is not bound to a key');
      return { token, dpop: undefined };
    }
    // RFC 9449 section 7.2: a bound token never passes as a bearer token
    if (kind === 'bearer')
      throw new Failure('invalid_token', 'this access token is bound to a key: use the DPoP scheme');
    const accepted = await dpopProofs.check(view, dpop, {
      ...expected,
      issuer: token.audience,
      accessToken: text,
    });
    // RFC 9449 section 7.1
    if (accepted.thumbprint !== token.keyThumbprint)
      throw new Failure('invalid_token', 'the access token is bound to another key');
    return { token, dpop: accepted };
  }
}

/** @throws Failure `missing_token`, `invalid_token`. */
function readAuthorization(authorization: string | undefined): { kind: 'dpop' | 'bearer'; text: string } {
  if (authorization === undefined) throw new Failure('missing_token');
  const [scheme = '', text = '', surplus] = authorization.trim().split(/ +/);
  const kind = scheme.toLowerCase();
  if (kind !== 'dpop' && kind !== 'bearer') throw new Failure('missing_token');
  // RFC 6750 section 3.1: two ways at once, or something that is no token, is a malformed request
  if (surplus !== undefined || text === '')
    throw new Failure('invalid_token', 'the access token is malformed');
  return { kind, text };
}

/** What an authenticated request spends. */
export function usedByWallet({ dpop }: AuthenticatedWallet): readonly UsedValue[] {
  return dpop === undefined ? [] : [{ kind: 'dpop_jti', hash: dpop.hash, expiresAt: dpop.expiresAt }];
}
