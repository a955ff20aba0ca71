import { hash } from 'node:crypto';
import { decodeBase64url } from '../../shared/base64url.ts';
import { type PublicJwk, thumbprint } from '../../shared/jwk.ts';
import { encodeCbor } from '../cbor/encode.ts';
import type { Cbor } from '../cbor/values.ts';

/** The encryption key of the response; `undefined` for a plain response. */
type Encryption = { readonly nonce: string; readonly encryptionKey: PublicJwk | undefined };

/**
 * The SessionTranscript that a wallet signs, CBOR (OpenID4VP 1.0 appendix B.2.6.1). All values come from the request as sent, never from
 * the response.
 */
export function redirectTranscript(
  request: Encryption & {
    /** Includes the prefix. */
    readonly clientId: string;
    /** The `response_uri`, or the `redirect_uri` of the response mode `fragment`. */
    readonly responseUri: string;
  },
): Buffer {
  const { clientId, nonce, responseUri } = request;
  return transcript('OpenID4VPHandover', [clientId, nonce, thumbprintOf(request), responseUri]);
}

/** OpenID4VP 1.0 appendix B.2.6.2. `origin` is opaque and has no prefix `origin:`. */
export function dcApiTranscript(request: Encryption & { readonly origin: string }): Buffer {
  const { origin, nonce } = request;
  return transcript('OpenID4VPDCAPIHandover', [origin, nonce, thumbprintOf(request)]);
}

/** OpenID4VCI 1.1 appendix A.2.5. `endpoint` is the interactive authorization endpoint. */
export function interactiveTranscript(request: Encryption & { readonly endpoint: string }): Buffer {
  const { endpoint, nonce } = request;
  return transcript('OpenID4VCIIAEHandover', [endpoint, nonce, thumbprintOf(request)]);
}

/**
 * ISO/IEC TS 18013-7 section C.5.
 * @param encryptionInfo exactly as in the request.
 */
export function isoMdocTranscript(request: { readonly encryptionInfo: string; readonly origin: string }): Buffer {
  return transcript('dcapi', [request.encryptionInfo, request.origin]);
}

function transcript(name: string, info: readonly Cbor[]): Buffer {
  // OpenID4VP 1.0 appendix B.2.6: over the plain encoding, without tag 24
  return encodeCbor([null, null, [name, hash('sha256', encodeCbor(info), 'buffer')]]);
}

function thumbprintOf({ encryptionKey }: Encryption): Buffer | null {
  return encryptionKey === undefined ? null : (decodeBase64url(thumbprint(encryptionKey)) ?? null);
}
