import { parseCompactJws } from '../../domain/formats/jose/compact.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import { isDcApi, type PostedVerification, type VerificationRequest } from '../../domain/sessions/session.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../domain/shared/ids.ts';
import type { DcqlQuery } from '../../domain/verification/dcql/query.ts';
import { prefixOf, REQUEST_OBJECT_TYPE } from '../../domain/verification/request-object.ts';
import {
  type Demands,
  readWalletMetadata,
  readWishes,
  type WalletParameters,
  type WalletWishes,
} from '../../domain/verification/wallet-parameters.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { Encryption } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { OpenRequests } from './open-requests.ts';

/** Hands the signed request to a wallet (OpenID4VP 1.0 section 5.10), as often as it asks before it answers. */
export class ServeRequestObject extends needs({
  openRequests: OpenRequests,
  kms: Kms,
  encryption: Encryption,
}) {
  /**
   * @returns the compact request object, the same bytes each time unless the wallet wants something else in it.
   * @throws Failure `not_found`; `gone` once the request has expired or was answered; `invalid_request` when the
   *   wallet's parameters cannot be met.
   */
  async execute(tenantId: TenantId, publicId: PublicId, wallet: WalletParameters = {}): Promise<string> {
    const { openRequests, encryption } = this.ports;
    const metadata = readWalletMetadata(wallet);
    // What a wallet cannot answer is not fetched by it, so it is looked at before.
    const asked =
      wallet.wallet_metadata === undefined ? undefined : await openRequests.peek(tenantId, publicId);
    const wishes = readWishes(metadata, demandsOf(asked), wallet.wallet_nonce);
    const { request, chain } = await openRequests.fetch(tenantId, publicId, isSigned);
    const requestObject = await this.#fulfil(request, chain, wishes);
    const { recipient, enc } = wishes;
    if (recipient === undefined || enc === undefined) return requestObject;
    // RFC 9101 section 4: signed, then encrypted
    return encryption.encrypt(requestObject, recipient, { enc, contentType: 'JWT' });
  }

  /** OpenID4VP 1.0 sections 5.8 and 5.10: the wallet's nonce and name go into what is signed. */
  async #fulfil(
    { requestObject }: SignedRequest,
    chain: KeyChain | undefined,
    { nonce, issuer }: WalletWishes,
  ): Promise<string> {
    if (nonce === undefined && issuer === undefined) return requestObject;
    const claims = parseCompactJws(requestObject)?.payload;
    if (claims === undefined || chain === undefined)
      throw new Failure('gone', 'the request is no longer served');
    const payload = {
      ...claims,
      ...(issuer !== undefined && { aud: issuer }),
      ...(nonce !== undefined && { wallet_nonce: nonce }),
    };
    return signJwt(this.ports.kms, { chain, typ: REQUEST_OBJECT_TYPE, payload });
  }
}

type SignedRequest = PostedVerification & { readonly requestObject: string };

/** An unsigned request stands in the address that starts the wallet. */
function isSigned(request: VerificationRequest): request is SignedRequest {
  return !isDcApi(request) && request.requestObject !== undefined;
}

/** For an unknown request nothing is demanded: that it is unknown comes out afterwards. */
function demandsOf(request: VerificationRequest | undefined): Demands | undefined {
  if (request === undefined || !isSigned(request)) return undefined;
  const { credentials } = request.dcqlQuery as unknown as DcqlQuery;
  return {
    formats: credentials.map(({ format }) => format),
    clientIdPrefix: prefixOf(request.clientId),
    signedWith: String(parseCompactJws(request.requestObject)?.header['alg']),
    encrypts: request.encryption !== undefined,
  };
}
