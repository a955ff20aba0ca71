import { isoMdocTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { VerificationRequest } from '../../domain/sessions/session.ts';
import {
  type Envelope,
  isUndecrypted,
  type OpenedForm,
  openDeviceResponses,
} from '../../domain/verification/envelope.ts';
import { undecryptableReason } from '../../domain/verification/undecryptable.ts';
import type { Encryption, EncryptionKeyPair } from '../ports/encryption.ts';

/** How an answer comes in. */
export type Opening = {
  /**
   * What arrived, held against the request before anything is decrypted.
   * @throws Failure for what must leave the session as it is.
   */
  readonly open: (request: VerificationRequest) => OpenedForm;
  /**
   * @param plaintext undefined when it could not be decrypted.
   * @param outerState the `state` that stood beside the encrypted response.
   * @throws Failure like `open`.
   */
  readonly openPlaintext: (
    plaintext: string | undefined,
    request: VerificationRequest,
    outerState: string | undefined,
  ) => Envelope;
};

/** Decrypts what is encrypted, with the key of this very request. @throws Failure like `Opening`. */
export async function openResponse(
  encryption: Encryption,
  { open, openPlaintext }: Opening,
  request: VerificationRequest,
): Promise<Envelope> {
  const opened = open(request);
  if (opened.kind === 'sealed') {
    const { message, asked } = opened;
    // ISO/IEC TS 18013-7 section C.4: sealed for this very transcript
    const info = isoMdocTranscript(asked);
    const key = asked.encryption as unknown as EncryptionKeyPair;
    return openDeviceResponses(await encryption.openHpke(message, key, info), asked);
  }
  if (opened.kind !== 'encrypted') return opened;
  // OpenID4VP 1.0 section 8.3
  const key = request.encryption as unknown as EncryptionKeyPair | undefined;
  const plaintext = key === undefined ? undefined : await encryption.decrypt(opened.jwe, key);
  const envelope = openPlaintext(plaintext, request, opened.outerState);
  const kid = key?.publicJwk.kid;
  if (!isUndecrypted(envelope) || kid === undefined) return envelope;
  return { ...envelope, detail: `the response does not decrypt: ${undecryptableReason(opened.jwe, kid)}` };
}
