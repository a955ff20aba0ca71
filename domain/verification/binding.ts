import { dcApiTranscript, isoMdocTranscript, redirectTranscript } from '../formats/mdoc/session-transcript.ts';
import { encryptionKeyOf } from './request-object.ts';
import { type IsoMdocAsked, isDcApi, type VerificationRequest } from './verification-request.ts';

/** What ties a presentation to one request. */
export type Binding = {
  /** Whom an SD-JWT VC may be presented to, the `aud` of its key binding. */
  readonly audience: string | readonly string[];
  /** By which names a credential may know the verifier: its client identifier, the origins of its addresses and pages. */
  readonly recipients: readonly string[];
  /** SessionTranscripts that an mdoc may be presented in, CBOR; made for those only. */
  readonly transcripts: () => readonly Buffer[];
};

/** Follows from the request as it was stored, never from the response (OpenID4VP 1.0 section 14.1). */
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
    // OpenID4VP 1.0 appendices A.4 and B.3.6: the origin of the page, also when the request is signed
    audience: pages,
    recipients: [...origins, ...pages, ...clientIds, ...(clientId === undefined ? [] : [clientId])],
    transcripts: () => origins.map((origin) => dcApiTranscript({ origin, nonce, encryptionKey })),
  };
}

/** The same for an answer by the protocol of ISO/IEC TS 18013-7 Annex C, which knows mdocs alone. */
export function isoMdocBinding(asked: IsoMdocAsked): Binding {
  return { audience: [], recipients: [asked.origin], transcripts: () => [isoMdocTranscript(asked)] };
}
