import type { WalletTokenClaims } from '../../domain/oauth/access-token.ts';
import { type AcceptedDpopProof, acceptDpopProof, openDpopProof } from '../../domain/oauth/dpop.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { TenantView } from './tenant-views.ts';
import type { WalletTokens } from './wallet-tokens.ts';

/** What a wallet sends to a protected endpoint, as it came. */
export type WalletCredentials = {
  readonly authorization: string | undefined;
  /** Every `DPoP` header field. */
  readonly dpop: readonly string[];
};

/**
 * Checks a wallet's access token and its proof of possession (RFC 9449 section 7.1). Remembering the proof's `jti` is
 * the caller's beat.
 * @throws Failure `missing_token`, `invalid_token`, `invalid_dpop_proof`, `invalid_request`.
 */
export async function authenticateWallet(
  ports: { readonly walletTokens: WalletTokens; readonly signatures: Signatures },
  view: TenantView,
  { authorization, dpop }: WalletCredentials,
  expected: { readonly method: string; readonly url: string; readonly now: Date },
): Promise<{ token: WalletTokenClaims; dpop: AcceptedDpopProof | undefined }> {
  if (authorization === undefined) throw new Failure('missing_token');
  const [scheme = '', text = '', surplus] = authorization.trim().split(/ +/);
  const kind = scheme.toLowerCase();
  if (kind !== 'dpop' && kind !== 'bearer') throw new Failure('missing_token');
  // RFC 6750 section 3.1: two ways at once, or something that is no token, is a malformed request
  if (surplus !== undefined || text === '')
    throw new Failure('invalid_token', 'the access token is malformed');
  const token = await ports.walletTokens.verify(view, text);
  if (token === undefined) throw new Failure('invalid_token', 'the access token is invalid or expired');
  if (token.keyThumbprint === undefined) {
    if (kind === 'dpop') throw new Failure('invalid_token', 'this access token is not bound to a key');
    return { token, dpop: undefined };
  }
  // RFC 9449 section 7.2: a bound token never passes as a bearer token
  if (kind === 'bearer')
    throw new Failure('invalid_token', 'this access token is bound to a key: use the DPoP scheme');
  const opened = openDpopProof(dpop);
  if (!ports.signatures.verify(opened.key, opened.signingInput, opened.signature)) {
    throw new Failure('invalid_dpop_proof', 'the signature of the proof is wrong');
  }
  const accepted = acceptDpopProof(opened, { ...expected, accessToken: text });
  // RFC 9449 section 7.1
  if (accepted.thumbprint !== token.keyThumbprint)
    throw new Failure('invalid_token', 'the access token is bound to another key');
  return { token, dpop: accepted };
}
