import { dcApiTranscript, isoMdocTranscript, redirectTranscript } from '../formats/mdoc/session-transcript.ts';
import { encryptionKeyOf } from './request-object.ts';
import { type IsoMdocRequest, isDcApi, type VerificationRequest } from './verification-request.ts';

/** The values that bind a presentation to one request. */
export type Binding = {
  /** Accepted `aud` of the key binding of an SD-JWT VC. */
  readonly audience: string | readonly string[];
  /** Names of the verifier that a credential's audience may contain: its client identifier, the origins of its addresses and pages. */
  readonly recipients: readonly string[];
  /** Accepted SessionTranscripts of an mdoc, CBOR; computed on demand. */
  readonly transcripts: () => readonly Buffer[];
};

/** The binding is computed from the stored request, never from the response (OpenID4VP 1.0 section 14.1). */
export function bindingOf(request: VerificationRequest): Binding {
  const encryptionKey = encryptionKeyOf(request);
  if (!isDcApi(request)) {
    const { clientId, responseUri, nonce } = request;
    return {
      audience: clientId,
      recipients: [clientId, new URL(responseUri).origin],
      transcripts: () => [redirectTranscript({ clientId, responseUri, nonce, encryptionKey })],
    };
  }
  const { origins, nonce, clientId, clientIds = [] } = request;
  const pages = origins.map((origin) => `origin:${origin}`);
  return {
    // OpenID4VP 1.0 appendices A.4 and B.3.6: the origin of the page, also for signed requests
    audience: pages,
    recipients: [...origins, ...pages, ...clientIds, ...(clientId === undefined ? [] : [clientId])],
    transcripts: () => origins.map((origin) => dcApiTranscript({ origin, nonce, encryptionKey })),
  };
}

/** Binding of a response by the protocol of ISO/IEC TS 18013-7 Annex C, which supports mdocs only. */
export function isoMdocBinding(request: IsoMdocRequest): Binding {
  return { audience: [], recipients: [request.origin], transcripts: () => [isoMdocTranscript(request)] };
}
