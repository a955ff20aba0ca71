import { redirectTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { PublicJwk } from '../../domain/shared/jwk.ts';
import { deviceResponse } from '../support/device.ts';
import type { PresentationRequest, StoredCredential } from '../wallets/openid4vc/credentials.ts';

const DOC_TYPE = 'org.iso.18013.5.1.mDL';
const NAMESPACE = 'org.iso.18013.5.1';

/** The claims that the car rental requests, with their issued values. */
export const LICENCE_CLAIMS = {
  [NAMESPACE]: { document_number: 'EX-1234567', driving_privileges: [{ vehicle_category_code: 'B', issue_date: '2010-01-01' }] },
};

/**
 * The packages of the wallet do not support mdocs, so this makes the device response: the requested elements, and a
 * signature over this request (ISO/IEC 18013-5 section 9.1.3, OpenID4VP 1.0 appendix B.2.6.1).
 */
export function presentLicence({ clientId, payload }: PresentationRequest, { text, holder }: StoredCredential): Record<string, string[]> {
  const { jwks } = payload['client_metadata'] as { jwks: { keys: PublicJwk[] } };
  const transcript = redirectTranscript({
    clientId,
    responseUri: String(payload['response_uri']),
    nonce: String(payload['nonce']),
    encryptionKey: jwks.keys[0],
  });
  const shownElements = Object.keys(LICENCE_CLAIMS[NAMESPACE] ?? {});
  const device = { text, holder, docType: DOC_TYPE };
  return { licence: [deviceResponse(device, transcript, shownElements)] };
}
